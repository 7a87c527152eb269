# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run --live` shows what is recorded while the program runs, and leaves its output alone."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest
from installed import OPSTROBE

TIMEOUT_S = 300  # of what must not hang; nothing depends on how long it takes
LINES, COLUMNS = 30, 100
OWN_LINES = 10

PROGRAM = """
import sys, torch
model = torch.nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
while step != int(sys.argv[1]):
    optimizer.zero_grad()
    model(torch.rand(16, 64)).sum().backward()
    with torch.profiler.record_function("an\\x1b[31m odd\\nname"):
        torch.ones(100000).sum()
        sum(range(50000))  # self time, so that it is among those shown
    optimizer.step()
    step += 1
    if step <= 3:
        print("step", step, flush=True)
print("the end")
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def run(folder, *words, **environment):
    return subprocess.run(
        [OPSTROBE, "run", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=os.environ | environment,
    )


def test_a_line_now_and_then_without_a_terminal(program):
    done = run(program, "--live=0.05", "--memory", "-o", "trace.json", "train.py", "40", LC_ALL="C.UTF-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["step 1", "step 2", "step 3", "the end"]
    lines = done.stderr.splitlines()
    (end,) = [i for i, line in enumerate(lines) if line.startswith("opstrobe: wrote trace.json")]
    shown = lines[:end]
    assert all(line.startswith("opstrobe: ") for line in shown)  # an odd name ends no line
    assert "\x1b" not in done.stderr
    last = shown[-1]
    assert ", 40 steps, " in last and re.search(r"CPU [\d.]+ \w+ allocated", last)
    # The last line has the shares that the trace has.
    table = subprocess.run(
        [OPSTROBE, "table", "--format", "json", "--row-limit", "1000", "trace.json"],
        cwd=program, capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer = json.loads(table.stdout)
    rows = [dict(zip(answer["table"]["columns"], row)) for row in answer["table"]["rows"]]
    own = {row["name"]: row["self_cpu_time_total"] for row in rows}
    own.pop("ProfilerStep*")  # is recorded when a step is over
    own["an?[31m odd?name"] = own.pop("an\x1b[31m odd\nname")
    shares = re.findall(r"([^,]+) (\d+) %(?:, )?", last.split("; self time: ")[1])
    assert len(shares) == 3
    for name, share in shares:
        # Steps count in neither; what runs between them may count in one.
        assert abs(own[name] / sum(own.values()) * 100 - int(share)) < 5, (name, share)


def test_nothing_is_shown_unless_asked_for(program):
    done = run(program, "-o", "trace.json", "train.py", "3")
    assert done.stderr.startswith("opstrobe: wrote trace.json")
    for odd in ("x", "0", "1e9", "-1", "nan"):
        assert run(program, f"--live={odd}", "train.py", "3").returncode == 2


class Terminal:
    """A program in a new terminal. What it writes is read until it has said something, or has ended.

    As a context it takes the program away with it, however the test goes.
    """

    def __init__(self, folder, *words, **environment):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            # Unbuffered, Python writes the words of a line one by one, and a picture may come between them.
            own = {"TERM": "xterm", "PYTHONUNBUFFERED": ""}
            os.execve(OPSTROBE, ["opstrobe", "run", *words], os.environ | own | environment)
        self.seen = b""
        self.code = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.end()

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, until=None):
        start = len(self.seen)
        while until is None or until not in self.seen[start:]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                assert until is None, self.seen
                break
            self.seen += data
        return self.seen[start:].decode()

    def end(self):
        self.read()
        os.close(self.fd)
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_the_last_lines_of_a_terminal(program, locale):
    words = ["--live=0.05", "-o", "trace.json", "train.py", "-1"]
    with Terminal(program, *words, LC_ALL=locale) as terminal:
        terminal.resize(LINES, COLUMNS)
        terminal.read(b"step 3")
        for _ in range(100):  # the duration of the first steps comes first for a while
            picture = terminal.read(b"\x1b[?7h\x1b8") + terminal.read(b"\x1b[?7h\x1b8")
            if "an?[31m odd?name" in picture:
                break
        assert f"\x1b[1;{LINES - OWN_LINES}r" in terminal.seen.decode()  # the rest scrolls above
        places = {int(line) for line in re.findall(r"\x1b\[(\d+);1H", picture)}
        assert places == set(range(LINES - OWN_LINES + 1, LINES + 1))
        assert "an?[31m odd?name" in picture
        assert ("█" in picture) == (locale == "C.UTF-8")
        assert picture.isascii() == (locale == "C")
        terminal.resize(40, 120)
        terminal.read(f"\x1b[1;{40 - OWN_LINES}r".encode())
        terminal.read(b"\x1b[40;1H")
        os.write(terminal.fd, b"\x03")
        assert terminal.end() != 0  # by KeyboardInterrupt, as without
        shown = terminal.seen.decode()
        assert shown.rindex("\x1b[r") > shown.rindex(f"\x1b[1;{40 - OWN_LINES}r")  # all lines are the program's again
        assert re.search(r"opstrobe: [\d.]+ s, \d+ steps, .*\r\nopstrobe: wrote trace.json", shown)
        assert "KeyboardInterrupt" in shown
        assert re.findall(r"step \d+(?=\r\n)", shown) == ["step 1", "step 2", "step 3"]


def test_a_small_terminal_gets_lines(program):
    with Terminal(program, "--live=0.05", "-o", "trace.json", "train.py", "40") as terminal:
        terminal.resize(12, 80)
        assert terminal.end() == 0
        assert "\x1b[1;" not in terminal.seen.decode()
        assert ", 40 steps, " in terminal.seen.decode()


def test_nobody_reads_standard_error(program):
    """The program goes on when the pipe behind standard error is full, or closed."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(write, False)
    os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    shown = (
        "import os; os.close(2); os.open('/dev/null', os.O_WRONLY)\n" + PROGRAM
    )  # what the end says is not about this
    (program / "train.py").write_text(shown)
    words = [OPSTROBE, "run", "--live=0.01", "--force", "-o", "trace.json", "train.py", "100"]
    done = subprocess.run(words, cwd=program, stdout=subprocess.PIPE, stderr=write, timeout=TIMEOUT_S)
    assert done.stdout.decode().endswith("the end\n")
    os.close(read)
    (program / "train.py").write_text(PROGRAM)
    done = subprocess.run(words, cwd=program, stdout=subprocess.PIPE, stderr=write, timeout=TIMEOUT_S)
    assert done.stdout.decode().endswith("the end\n")
    os.close(write)


def test_a_forked_child_shows_nothing(program):
    (program / "fork.py").write_text(
        "import os, torch\ntorch.ones(3)\nif not os.fork():\n    raise SystemExit(0)\nos.wait()\nprint('the end')\n"
    )
    done = run(program, "--live=3600", "--with-stack=none", "-o", "trace.json", "fork.py")
    assert done.stdout == "the end\n"
    # One summary, what was written, that a child was not recorded, and how to view the trace.
    assert len(done.stderr.splitlines()) == 4
