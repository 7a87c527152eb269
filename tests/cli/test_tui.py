# SPDX-License-Identifier: Apache-2.0
"""`opstrobe tui` on a real terminal: what it draws, keys, the end, and what it says where it cannot run."""

import fcntl
import json
import os
import pathlib
import pty
import select
import struct
import subprocess
import termios
import time

import pyte
import pytest
from installed import OPSTROBE, PYTHON

from opstrobe import _core

TIMEOUT_S = 300  # of what must not hang; nothing depends on how long it takes
TRACES = pathlib.Path(__file__).parents[2] / "web/tests/traces"
COLUMNS, LINES = 80, 24


class Terminal:
    """A command on a new terminal, and the screen that it has drawn."""

    def __init__(self, *words, env, cwd=None, columns=COLUMNS, lines=LINES):
        self.main, self.side = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self.side)
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.process = subprocess.Popen(
            [OPSTROBE, *words],
            cwd=cwd,
            env=env,
            stdin=self.side,
            stdout=self.side,
            stderr=self.side,
            start_new_session=True,
        )

    def resize(self, columns, lines):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds=0.1):
        while select.select([self.main], [], [], seconds)[0]:
            piece = os.read(self.main, 65536)
            self.written += piece
            # pyte does not know sequences with ">" or "=": they set keyboard modes.
            self.stream.feed(b"".join(piece.split(b"\x1b[?u")))

    def wait_for(self, *texts):
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end and self.process.poll() is None:
            self.read()
            if all(text in self.text for text in texts):
                return
        raise AssertionError(f"{texts} not on the screen:\n{self.text}")

    @property
    def text(self):
        return "\n".join(self.screen.display)

    def press(self, keys):
        os.write(self.main, keys.encode())

    def finish(self):
        end = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        self.after = termios.tcgetattr(self.side)
        status = self.process.wait(timeout=1)
        os.close(self.main)
        os.close(self.side)
        return status


@pytest.fixture(autouse=True)
def no_process_stays(monkeypatch):
    """Also where a test fails."""
    started = []
    start = Terminal.__init__

    def remember(terminal, *words, **options):
        start(terminal, *words, **options)
        started.append(terminal.process)

    monkeypatch.setattr(Terminal, "__init__", remember)
    yield
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def variables(environment):
    names = ("COLORTERM", "NO_COLOR", "COLUMNS", "LINES")
    return {**{n: v for n, v in environment.items() if n not in names}, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def operators():
    words = [OPSTROBE, "views", "--format", "json", TRACES / "train.pt.trace.json.gz"]
    views = json.loads(subprocess.run(words, capture_output=True, check=True, timeout=TIMEOUT_S).stdout)
    return views["operators"]["rows"]


def test_keys_on_a_terminal(variables, operators):
    terminal = Terminal("tui", "train.pt.trace.json.gz", env=variables, cwd=TRACES)
    terminal.wait_for("Median step", "Quit")
    terminal.press("2")
    terminal.wait_for("Self CPU", "Filter")
    first = max(operators, key=lambda row: row["host_self"])
    line = next(line for line in terminal.screen.display if first["name"] in line)
    assert _core.format_duration(first["host_self"] * 1000) in line and f" {first['calls']:,} " in line
    terminal.press("/addmm")  # at once, as a slow connection delivers it
    terminal.wait_for("3 of 85 rows", "aten::addmm")
    assert "aten::mm " not in terminal.text
    terminal.press("\r?")
    terminal.wait_for("Everywhere")
    terminal.press("6")  # also closes the sheet
    terminal.wait_for("Zoom in", "total")
    terminal.resize(100, 30)
    terminal.screen.resize(30, 100)
    terminal.process.send_signal(28)  # SIGWINCH
    terminal.press("1")
    terminal.wait_for("Median step", "Quit")
    terminal.press("q")
    assert terminal.finish() == 0
    assert terminal.after == terminal.before  # echo and lines again
    assert terminal.written.rindex(b"\x1b[?1049l") > terminal.written.rindex(b"\x1b[?1049h")  # the screen from before
    assert terminal.written.rindex(b"\x1b[?25h") > terminal.written.rindex(b"\x1b[?25l")  # the cursor
    assert terminal.written.rindex(b"\x1b[?1000l") > terminal.written.rindex(b"\x1b[?1000h")  # no mouse


def test_the_terminal_is_gone(variables):
    terminal = Terminal("tui", "train.pt.trace.json.gz", env=variables, cwd=TRACES)
    terminal.wait_for("Median step", "Quit")
    os.close(terminal.side)
    os.close(terminal.main)
    assert terminal.process.wait(timeout=TIMEOUT_S) == 1


def colors(written):
    """The parameters of all sequences that set colors."""
    found = set()
    for piece in written.split(b"\x1b[")[1:]:
        parameters, m, _ = piece.partition(b"m")
        if m and parameters.replace(b";", b"").isdigit():
            found.add(parameters.decode())
    return found


@pytest.mark.parametrize("term", ["xterm", "linux"])
def test_sixteen_colors(variables, term):
    terminal = Terminal("tui", "train.pt.trace.json.gz", env={**variables, "TERM": term}, cwd=TRACES)
    terminal.wait_for("Median step", "Quit")
    terminal.press("2")
    terminal.wait_for("Self CPU", "Filter")
    terminal.press("6")
    terminal.wait_for("Zoom in", "total")
    terminal.press("q")
    assert terminal.finish() == 0
    assert not [each for each in colors(terminal.written) if "38;5" in each or "38;2" in each or "48;" in each]


def test_no_color(variables):
    terminal = Terminal("tui", "train.pt.trace.json.gz", env={**variables, "NO_COLOR": "1"}, cwd=TRACES)
    terminal.wait_for("Median step", "Quit")
    terminal.press("6")
    terminal.wait_for("Zoom in", "total")
    terminal.press("q")
    assert terminal.finish() == 0
    for parameters in colors(terminal.written):
        values = parameters.split(";")
        if "2" in values[1:2] and values[0] in ("38", "48"):  # shades of gray
            assert values[2] == values[3] == values[4]
        else:
            assert not any(value in map(str, (*range(31, 37), *range(41, 47), *range(91, 97))) for value in values)


def test_a_program_and_ctrl_c(variables, tmp_path):
    (tmp_path / "train.py").write_text("import torch\nprint('begin')\nwhile True:\n    torch.ones(9).sum()\n")
    terminal = Terminal(
        "tui", "--live", "-o", "t.json", "--steps", "9", "--max-bytes", "64M", "train.py", env=variables, cwd=tmp_path
    )
    terminal.wait_for("begin", "resident")
    terminal.press("\x03")
    terminal.wait_for("The program was ended by SIGINT: Enter shows the trace", "KeyboardInterrupt")
    terminal.press("q")
    assert terminal.finish() == 0 and terminal.after == terminal.before


def test_a_file_that_is_not_a_trace(variables, tmp_path):
    (tmp_path / "t.json").write_text("this is text")
    terminal = Terminal("tui", "t.json", env=variables, cwd=tmp_path)
    terminal.wait_for("Cannot show the trace", "t.json")
    terminal.press("q")
    assert terminal.finish() == 1
    terminal = Terminal("tui", "missing.json", env=variables, cwd=tmp_path)
    assert terminal.finish() == 1
    assert "opstrobe tui: cannot read 'missing.json': no such file" in terminal.text


def test_without_a_terminal(opstrobe, variables):
    done = opstrobe("tui", str(TRACES / "train.pt.trace.json.gz"))
    assert done.returncode == 1 and "must be a terminal" in done.stderr
    terminal = Terminal("tui", "train.pt.trace.json.gz", env={**variables, "TERM": "dumb"}, cwd=TRACES)
    assert terminal.finish() == 1 and "TERM is 'dumb'" in terminal.text


def test_without_textual(variables, tmp_path):
    """A package of that name which is not there."""
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text("import sys\nsys.modules['textual'] = None\n")
    terminal = Terminal(
        "tui", "train.pt.trace.json.gz", env={**variables, "PYTHONPATH": str(tmp_path / "start")}, cwd=TRACES
    )
    assert terminal.finish() == 1
    text = "".join(terminal.text.split())
    assert "thepackage'textual'isnotinstalled" in text and "pipinstall'opstrobe[tui]'" in text


def test_help_and_completion(opstrobe):
    done = opstrobe("tui", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: opstrobe tui ")
    assert opstrobe("tui").returncode == 2
    assert opstrobe("tui", "a.json", "--live", "b.py").returncode == 2
    assert "tui" in opstrobe("--complete", "t").stdout.split()


def test_the_picture_of_the_manual(rewrite, tmp_path):
    """Draws the views as the manual shows them; with --rewrite, into docs/images."""
    script = tmp_path / "draw.py"
    script.write_text(DRAW)
    folder = pathlib.Path(__file__).parents[2] / "docs/images" if rewrite else tmp_path
    subprocess.run([PYTHON, script, folder], cwd=TRACES, check=True, timeout=TIMEOUT_S)
    for name in ("overview", "operators", "flame"):
        picture = (folder / f"tui-{name}.svg").read_text()
        assert picture.startswith("<svg") and "Quit" in picture and "url(" not in picture.replace("url(#", "")


DRAW = """
import asyncio, os, re, sys
os.environ["COLORTERM"] = "truecolor"
from opstrobe.tui.app import TraceApp
from opstrobe.tui.source import Source

async def draw(folder):
    app = TraceApp(Source("train.pt.trace.json.gz"))
    async with app.run_test(size=(100, 30)) as pilot:
        for key, name, *words in (
            ("1", "overview", "Median&#160;step", "Quit"),
            ("2", "operators", "aten::addmm", "Filter"),
            ("6", "flame", "ProfilerStep", "Zoom&#160;in"),
        ):
            while app.view() is None:
                await pilot.pause(0.05)
            await pilot.press(key, *["down"] * (name == "flame"))
            while not all(word in app.export_screenshot() for word in words):
                await pilot.pause(0.05)
            with open(f"{folder}/tui-{name}.svg", "w") as file:  # with fonts of the reader's machine: pictures load nothing
                file.write(re.sub(r"@font-face {.*?}\\s*", "", app.export_screenshot(), flags=re.DOTALL))

asyncio.run(draw(sys.argv[1]))
"""
