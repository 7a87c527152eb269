# SPDX-License-Identifier: Apache-2.0
"""Text on a terminal: its width, colors, and the pager that shows what is longer than the screen."""

import fcntl
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import termios
import threading

import pytest
from installed import OPSTROBE


def row(name, ts, dur, cat="cpu_op"):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}


@pytest.fixture
def trace(tmp_path):
    """1,500 operators of one name and some others, each in a Python function with its line."""
    rows = [row("train.py(7): step", 0, 20000, "python_function")]
    rows += [row("aten::mm", 10 * i, 6) for i in range(1500)]
    rows += [row(f"aten::operator_{i}", 15000 + 10 * i, 5) for i in range(20)]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    return "t.json"


@pytest.fixture
def on_terminal(environment, tmp_path):
    """on_terminal("views", …, columns=…, rows=…): what a terminal of that size shows, and the exit status."""

    def call(*words, columns=100, rows=24, **variables):
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        shown = bytearray()

        def read():
            try:
                while piece := os.read(main, 65536):
                    shown.extend(piece)
            except OSError:
                pass  # the other side is closed

        env = {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8", **variables}
        process = subprocess.Popen([OPSTROBE, *words], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=side,
                                   stderr=subprocess.PIPE)  # fmt: skip
        os.close(side)
        reader = threading.Thread(target=read)
        reader.start()
        error = process.communicate(timeout=60)[1].decode()
        reader.join()
        os.close(main)
        return shown.decode().replace("\r\n", "\n"), error, process.returncode

    return call


def lines_of(text, title):
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if re.match(title, line))
    return lines[at : at + 4]


def test_width_is_used_for_means_shares_and_places(on_terminal, trace, tmp_path):
    head, first, *_ = lines_of(on_terminal("views", trace, columns=120, PAGER="", NO_COLOR="1")[0], "operators +calls")
    assert head.split() == ["operators", "calls", "self", "CPU", "mean", "of", "operators", "where"]
    assert first.split()[:8] == ["aten::mm", "1,500", "9.00", "ms", "6.00", "µs", "98.9", "%"]
    assert first.endswith("████████  train.py:7")
    long_path = "projects/training/entry_points/train.py"
    (tmp_path / "long.json").write_text((tmp_path / trace).read_text().replace("train.py", long_path))
    narrow = lines_of(on_terminal("views", "long.json", columns=60, PAGER="", NO_COLOR="1")[0], "operators +calls")
    assert "mean" not in narrow[0] and narrow[2].strip() == f"{long_path}:7"
    for columns in (60, 80, 100, 120, 160):
        text = on_terminal("views", trace, columns=columns, PAGER="", NO_COLOR="1")[0]
        assert max(map(len, text.splitlines())) <= columns


@pytest.mark.parametrize(
    "words", [("views",), ("kernels",), ("analyze", "gpu_kernel_breakdown.by_kernel"), ("advise",)]
)
def test_a_terminal_without_utf8_has_us(on_terminal, trace, tmp_path, words):
    events = json.loads((tmp_path / trace).read_text())["traceEvents"]
    events.append({**row("gemm", 7, 4, "kernel"), "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}})
    (tmp_path / trace).write_text(json.dumps({"traceEvents": events}))
    ascii, other = (on_terminal(*words, trace, PAGER="", NO_COLOR="1", LC_ALL=each)[0] for each in ("C", "C.UTF-8"))
    assert "µ" not in ascii and ("us" in ascii.split()) == ("µs" in other.split())
    assert "µ" in other or words == ("advise",)


def test_counts_have_separators(opstrobe, trace):
    text = opstrobe(trace).stdout
    assert text.startswith("1,521 events in ")
    assert "  1,500   9.00 ms" in text


def test_color(on_terminal, opstrobe, trace):
    colored = "\033[1moperators"
    assert colored in on_terminal(trace, PAGER="")[0]
    assert "\033" not in on_terminal(trace, PAGER="", NO_COLOR="1")[0]
    assert "\033" not in on_terminal(trace, "--color", "never", PAGER="")[0]
    assert "\033" not in opstrobe("views", trace).stdout
    assert colored in opstrobe("views", "--color=always", trace).stdout
    assert colored in opstrobe("--color", "always", trace).stdout
    assert colored in on_terminal(trace, "--color=always", PAGER="", NO_COLOR="1")[0]
    for wrong in (("--color=blue", trace), ("views", trace, "--color")):
        refused = opstrobe(*wrong)
        assert refused.returncode == 2 and "(choose from auto, always, never)" in refused.stderr


def test_the_pager_shows_long_results(on_terminal, tmp_path, trace):
    pager = f"cat > {tmp_path}/paged"
    shown, _, status = on_terminal("views", trace, rows=10, PAGER=pager)
    assert status == 0 and shown == ""
    paged = (tmp_path / "paged").read_text()
    assert "\033[1moperators" in paged and paged.endswith("\n")
    (tmp_path / "paged").unlink()
    for words, options in (
        (("views", trace, "--no-pager"), {"rows": 10}),
        (("--no-pager", trace), {"rows": 10}),
        ((trace,), {"rows": 200}),  # all of it fits
        ((trace,), {"rows": 10, "TERM": "dumb"}),
    ):
        shown, _, status = on_terminal(*words, PAGER=pager, **options)
        assert status == 0 and "operators" in shown and not (tmp_path / "paged").exists()
    for name in ("", "cat", "there-is-no-such-pager"):
        shown, _, status = on_terminal(trace, rows=10, PAGER=name)
        assert status == 0 and "operators" in shown


def test_the_pager_may_end_early(on_terminal, tmp_path):
    rows = [row(f"aten::operator_{i}", 10 * i, 5) for i in range(20000)]
    (tmp_path / "long.json").write_text(json.dumps({"traceEvents": rows}))
    shown, error, status = on_terminal("table", "--limit", "0", "long.json", rows=10, PAGER="head -n 2")
    assert status == 0 and error == "" and len(shown.splitlines()) == 2


def test_a_failure_is_still_one(on_terminal):
    shown, error, status = on_terminal("missing.json", PAGER="cat > paged")
    assert status == 1 and shown == "" and "missing.json" in error


def test_what_follows_run_is_the_programs(opstrobe, tmp_path):
    (tmp_path / "p.py").write_text("import sys\nprint(sys.argv[1:])\n")
    done = opstrobe("run", "-o", "t.json", "p.py", "--color", "never", "--no-pager")
    assert "['--color', 'never', '--no-pager']" in done.stdout


def test_lines_have_times_in_the_unit_that_fits(opstrobe, trace):
    head, first, *_ = opstrobe("lines", trace).stdout.splitlines()
    assert head.split() == ["Self", "Total", "Device", "Allocated", "Calls", "Line", "Function", "File"]
    assert first.split() == ["20.0", "ms", "20.0", "ms", "0", "0", "B", "1", "7", "step", "train.py"]
    head, first, *_ = opstrobe("lines", "--format", "csv", trace).stdout.splitlines()
    assert head.startswith("self,with_calls,") and first.startswith("20000,20000,0,0,1,7,")


def test_what_slow_steps_have_more_of_is_next_to_its_figures(on_terminal, tmp_path):
    steps = [row(f"ProfilerStep#{i}", 1000 * i, 900 if i == 7 else 100, "user_annotation") for i in range(9)]
    steps += [row("aten::mm", 1000 * i + 1, 880 if i == 7 else 80) for i in range(9)]
    (tmp_path / "slow.json").write_text(json.dumps({"traceEvents": steps}))
    for columns in (80, 120, 200):
        text = on_terminal("views", "slow.json", columns=columns, PAGER="", NO_COLOR="1")[0]
        rows = text[text.index("slow step 7") :].splitlines()
        cause = next(line for line in rows if line.startswith("operators"))
        assert cause.split()[1] == "800" and cause.index("800") <= 54


def test_operators_have_times_per_step_and_flops_per_second(on_terminal, opstrobe, tmp_path):
    matrices = {"Input Dims": [[512, 512], [512, 512]], "Input Strides": [[512, 1]] * 2, "Input type": ["float"] * 2}
    steps = [row(f"ProfilerStep#{i}", 2000 * i, 1900, "user_annotation") for i in range(4)]
    steps += [{**row("aten::mm", 2000 * i + 1, 1000), "args": matrices} for i in range(4)]
    (tmp_path / "steps.json").write_text(json.dumps({"traceEvents": steps}))
    text = on_terminal("views", "steps.json", columns=120, PAGER="", NO_COLOR="1")[0]
    head, first = next(
        (line.split(), after.split())
        for line, after in itertools.pairwise(text.splitlines())
        if line.startswith("operators ") and "calls" in line
    )
    assert head == ["operators", "calls", "self", "CPU", "mean", "per", "step", "FLOP/s", "of", "operators"]
    assert first[:8] == ["aten::mm", "4", "4.00", "ms", "1.00", "ms", "1.00", "ms"]
    assert first[8:12] == ["268", "G", "100", "%"]  # 2 · 512³ in 1 ms
    narrow = on_terminal("views", "steps.json", columns=80, PAGER="", NO_COLOR="1")[0]
    assert "aten::mm" in narrow and "FLOP/s" not in narrow
    report = opstrobe("report", "--format", "markdown", "steps.json", cwd=tmp_path).stdout
    assert "| mean | per step | FLOP/s | of operators |" in report and "| 268 G |" in report


def test_kernels_of_several_ranks_can_be_told_apart(on_terminal, tmp_path):
    """On a narrow terminal, too: names are short and the rank stays."""
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int, float)"
    for rank in (0, 1):
        kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 5, "dur": 20 - 10 * rank}
        kernel["args"] = {"device": 0, "stream": 7}
        trace = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": [kernel]}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    command = ("analyze", "gpu_kernel_breakdown.by_kernel", "rank0.json", "rank1.json")
    head, *rows = on_terminal(*command, columns=80, PAGER="", NO_COLOR="1")[0].splitlines()
    assert [column in head for column in ("Name", "Total", "Mean", "Rank")] == [True] * 4
    assert rows[0].startswith("at::native::vec") and "kernel  " in rows[0] and rows[0].endswith(" 0")
    assert rows[1].startswith("at::native::vec") and "kernel  " in rows[1] and rows[1].endswith(" 1")
