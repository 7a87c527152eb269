# SPDX-License-Identifier: Apache-2.0
"""What all commands have in common: help, forms of output, what they take for a trace, exit statuses, Ctrl-C."""

import bz2
import csv
import fcntl
import io
import json
import lzma
import os
import pathlib
import pickle
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest
from installed import OPSTROBE

import opstrobe as opstrobe_package

OK, FAILED, USAGE = 0, 1, 2
STEPS = 4


def listed():
    """The names of the commands, as `opstrobe --help` lists them."""
    text = subprocess.run([OPSTROBE, "--help"], capture_output=True, text=True, timeout=60).stdout
    return re.findall(r"^  (\w+) +\S", text.split("commands:")[1], re.MULTILINE)


# Arguments of each command in addition to its traces, and how many traces it takes: one, two or any number.
TABLES = {
    "views": ([], "any"),
    "analyze": (["key_averages"], "any"),
    "advise": ([], "any"),
    "kernels": ([], "any"),
    "memory": ([], "any"),
    "modules": ([], "any"),
    "lines": ([], "one"),
    "roofline": ([], "one"),
    "whatif": (["--remove-syncs"], "any"),
    "diff": ([], "two"),
    "table": ([], "one"),
    "info": ([], "one"),
    "validate": ([], "one"),
}
FILES = {
    "merge": (["--output", "out.json"], "any"),
    "convert": (["out.json"], "one"),
    "cut": (["--steps", "1:2", "out.json"], "one"),
    "report": (["-o", "out.json"], "one"),
}
# These have separate tests: test_run.py, tests/serve, golden/doctor.sh, and test_tui.py, test_roofline.py, test_spill.py, test_sql.py,
# test_archive.py, test_black_box.py, test_ci.py, test_prove.py and test_incidents.py in tests/python.
OTHERS = {"run", "serve", "doctor", "tui", "dump", "recover", "incidents", "roof", "sql", "archive", "ab", "prove"}


def test_every_command_is_in_the_tables():
    assert sorted(listed()) == sorted([*TABLES, *FILES, *OTHERS])


def trace(slower=1):
    """A program of a few steps: an operator with its shape and line, a launch, a kernel, an allocation."""
    rows = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}}]
    for step in range(STEPS):
        at, args = 1000 * step, {"External id": step + 1, "Input Dims": [[8, 8]], "Input type": ["float"]}
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 900, "tid": 1},
            {"ph": "X", "cat": "python_function", "name": "train.py(7): step", "ts": at + 1, "dur": 800, "tid": 1,
             "args": {"Python id": 2 * step + 1, "Python parent id": None}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": at + 10, "dur": 100 * slower, "tid": 1, "args": args},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 20, "dur": 5, "tid": 1,
             "args": {"correlation": step + 1, "External id": step + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": at + 40, "dur": 60, "pid": 0, "tid": 7,
             "args": {"correlation": step + 1, "stream": 7, "device": 0}},
            {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "ts": at + 30, "tid": 1,
             "args": {"Device Type": 0, "Device Id": -1, "Addr": 64, "Bytes": 4096, "Total Allocated": 4096}},
        ]  # fmt: skip
    return json.dumps({"schemaVersion": 1, "traceEvents": [{"pid": 1, **row} for row in rows]})


@pytest.fixture
def traces(tmp_path):
    (tmp_path / "a.pt.trace.json").write_text(trace())
    (tmp_path / "b.pt.trace.json").write_text(trace(2))
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "c.pt.trace.json").write_text(trace())
    return tmp_path


def words_of(command, first="a.pt.trace.json"):
    """The command line with `first` as its (first) trace."""
    extra, count = {**TABLES, **FILES}[command]
    words = [command, *([extra[0]] if command == "analyze" else [])]
    second = ["b.pt.trace.json"] if count == "two" else []
    if command == "analyze":
        return [*words, first]
    if command in ("convert", "cut"):
        return [*words, *extra[:-1], first, extra[-1]]
    return [*words, *extra, first, *second]


@pytest.mark.parametrize("command", sorted({*TABLES, *FILES, *OTHERS}))
def test_help_has_an_example_and_errors_their_statuses(opstrobe, traces, command):
    for asked in [[command, "--help"], [command, "-h"], ["help", command]]:
        process = opstrobe(*asked, cwd=traces)
        assert process.returncode == OK and not process.stderr
        assert process.stdout.startswith(f"usage: opstrobe {command}")
        assert re.search(rf"\nexamples?:\n  opstrobe {command}\b", process.stdout)
        assert all(len(line) < 100 for line in process.stdout.splitlines())
    if command in TABLES:
        assert "--format text|json|csv|markdown" in process.stdout
    if command in OTHERS:
        process = opstrobe(command, "--hepl", cwd=traces)
        assert process.returncode == USAGE and not process.stdout
        assert process.stderr.startswith(f"opstrobe {command}: ") and process.stderr.count("\n") == 1
        if command in ("run", "prove", "sql", "doctor", "roof"):
            assert process.stderr.endswith(": unknown option '--hepl'; did you mean '--help'?\n")
        return
    process = opstrobe(*words_of(command), "--no-such-option", cwd=traces)
    assert process.returncode == USAGE and "no-such-option" in process.stderr and not process.stdout
    process = opstrobe(command, cwd=traces)
    assert process.returncode == USAGE and process.stderr.startswith(f"opstrobe {command}: ") and not process.stdout
    process = opstrobe(*words_of(command, "missing.json"), cwd=traces)
    assert process.returncode == FAILED and "'missing.json'" in process.stderr and not process.stdout
    assert not (traces / "out.json").exists()


@pytest.mark.parametrize("command", sorted(TABLES))
def test_forms(opstrobe, traces, command):
    def printed(form):
        process = opstrobe(*words_of(command), "--format", form, cwd=traces)
        assert process.returncode == OK and not process.stderr, process.stderr
        return process.stdout

    json.loads(printed("json"))
    rows = list(csv.reader(io.StringIO(printed("csv"))))
    assert rows and all(len(row) == len(rows[0]) for row in rows)
    assert "\x1b" not in printed("text")  # colours are for terminals
    if command != "advise":  # which is prose
        lines = printed("markdown").splitlines()
        assert any(re.fullmatch(r"\|[-:|]+\|", line) for line in lines), lines
    process = opstrobe(*words_of(command), "--format", "xml", cwd=traces)
    assert process.returncode == USAGE and "(choose from json, text, csv, markdown)" in process.stderr


# Files that are not traces: name, text, and the message.
NO_TRACES = {
    "empty.json": ("", "the file is empty"),
    "notes.json": ("hello", "not a trace"),
    "page.json": ("<html>404</html>", "not a trace"),
    "config.json": ('{"lr": 0.1}', "no traceEvents"),
}


@pytest.mark.parametrize("name", NO_TRACES)
@pytest.mark.parametrize("command", sorted({*TABLES, *FILES}))
def test_files_that_are_not_traces(opstrobe, traces, command, name):
    (traces / name).write_text(NO_TRACES[name][0])
    process = opstrobe(*words_of(command, name), cwd=traces)
    assert process.returncode == FAILED and not process.stdout
    assert NO_TRACES[name][1] in process.stderr and name in process.stderr
    assert not (traces / "out.json").exists()


# Files of other tools: what they are taken for, and what reads them.
FOREIGN = {
    "weights.pickle": (pickle.dumps({"layer": [1, 2]}), "a Python pickle", "neither a memory snapshot"),
    "et.json": (b'{"schema": "1.1.1", "nodes": [{"id": 1}]}', "an execution trace", "not one of torch's ExecutionTraceObserver"),
    "node.cpuprofile": (b'{"nodes": [{"id": 1}], "startTime": 1, "samples": [1], "timeDeltas": [5]}', "a CPU profile of V8", "DevTools"),
    "trace.json.xz": (lzma.compress(b'{"traceEvents": []}'), "compressed by xz", "unpack it"),
    "trace.json.bz2": (bz2.compress(b'{"traceEvents": []}'), "compressed by bzip2", "unpack it"),
    "memory.raw.json": (b"[[-1, 1, 512, 7], [5, 2, 64, 0]]", "a raw memory timeline", "opstrobe analyze memory_timeline"),
    "memory.json": (b"[[-1, 5, 9], [[0, 0], [512, 0], [0, 64]]]", "a memory timeline without its blocks", ".raw.json.gz"),
    "jax.json": (b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"X","pid":1,"tid":2,'
                 b'"ts":1,"dur":5,"name":"fusion.3"}]}', "read the .xplane.pb file", "XProf"),
    "tf.json": (b'{"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"/job:localhost/cpu:0 Compute"}},'
                b'{"ph":"X","cat":"Op","pid":1,"tid":0,"ts":1,"dur":5,"name":"MatMul"}]}', "TensorFlow", "ui.perfetto.dev"),
    "devtools.json": (b'{"metadata":{"source":"DevTools"},"traceEvents":[{"ph":"X","cat":"devtools.timeline","pid":1,"tid":2,'
                      b'"ts":1,"dur":5,"name":"RunTask"}]}', "Chrome DevTools", "there"),
}  # fmt: skip


def test_analyses_refuse_what_is_not_a_trace(opstrobe, traces):
    (traces / "notes.json").write_text("hello")
    listed = opstrobe("analyze", "--list").stdout.splitlines()
    for analysis in [line.split()[0] for line in listed if line and not line[0].isspace()]:
        process = opstrobe(
            "analyze", analysis, *["notes.json"] * (2 if analysis.startswith("trace_diff") else 1), cwd=traces
        )
        assert process.returncode == FAILED and not process.stdout, (analysis, process)
        assert "trace" in process.stderr and "notes.json" in process.stderr, (analysis, process.stderr)


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("command", ["views", "advise", "analyze load", "convert"])
def test_files_of_other_tools(opstrobe, traces, command, name):
    content, kind, reader = FOREIGN[name]
    (traces / name).write_bytes(content)
    process = opstrobe(*command.split(), name, *(["out.json"] if command == "convert" else []), cwd=traces)
    assert process.returncode == FAILED and not process.stdout
    assert "not a PyTorch trace: the file looks like" in process.stderr and name in process.stderr
    assert kind in process.stderr and reader in process.stderr


def test_traces_that_resemble_other_tools(opstrobe, traces):
    """An event of PyTorch's profiler is enough for a trace, and leading white space is none of Perfetto's."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    (traces / "odd.json").write_text(
        "\n" * 14
        + json.dumps({"metadata": {"highres-ticks": True, "source": "DevTools"}, "nodes": [], "traceEvents": [event]})
    )
    shown = json.loads(opstrobe("info", "--format", "json", "odd.json", cwd=traces).stdout)
    assert shown["value"]["events"] == 1


def test_an_output_that_is_the_input(opstrobe, traces):
    """Nothing is written, however the file is named."""
    before = (traces / "a.pt.trace.json").read_bytes()
    (traces / "link.json").symlink_to("a.pt.trace.json")
    for words in (
        ("convert", "a.pt.trace.json", "a.pt.trace.json"),
        ("convert", "a.pt.trace.json", "--output", "link.json"),
        ("cut", "--to", "1s", "a.pt.trace.json", "./a.pt.trace.json"),
        ("merge", "-o", "a.pt.trace.json", "a.pt.trace.json"),
        ("report", "-o", "a.pt.trace.json", "a.pt.trace.json"),
        ("report", "--format", "markdown", "-o", "link.json", "a.pt.trace.json"),
        ("merge", "-o", "a.pt.trace.json", "."),
        ("report", "-o", "a.pt.trace.json", "."),
        ("merge", "-o", "a.pt.trace.json", "*.trace.json"),
        ("sql", "-o", "a.pt.trace.json", "select 1 as one", "."),
        ("sql", "-o", "./a.pt.trace.json", "select 1 as one", "a.pt.trace.json"),
    ):
        process = opstrobe(*words, cwd=traces)
        assert process.returncode == USAGE and "is the input itself" in process.stderr, (words, process.stderr)
    assert (traces / "a.pt.trace.json").read_bytes() == before
    process = opstrobe("convert", "a.pt.trace.json", "-o", "new.json", cwd=traces)
    assert process.returncode == OK and re.fullmatch(r"opstrobe: wrote new\.json: \d+ events\n", process.stderr)
    assert opstrobe("convert", "a.pt.trace.json", cwd=traces).returncode == USAGE
    process = opstrobe("convert", "a.pt.trace.json", "b.json", "-o", "c.json", cwd=traces)
    assert process.returncode == USAGE and not (traces / "b.json").exists()


SLIPS = {
    "analyze": "no analysis given; 'opstrobe analyze --list' lists them",
    "analyze idle a.pt.trace.json": "unknown analysis 'idle'; did you mean 'idle_time_breakdown'?",
    "analyze critical_path_analysis a.pt.trace.json": "did you mean 'critical_path'?",
    "analyze get_gpu_kernel_breakdown a.pt.trace.json": "did you mean 'gpu_kernel_breakdown.by_type'?",
    "analyze temporal_breakdwon a.pt.trace.json": "did you mean 'temporal_breakdown'?",
    "analyze xyzzy a.pt.trace.json": "'opstrobe analyze --list' lists them",
    "kernels --fromat csv a.pt.trace.json": "unknown option '--fromat'; did you mean '--format'?",
    "kernels --by-operator=3 a.pt.trace.json": "option '--by-operator' takes no value",
    "kernels --limit": "option '--limit' requires a value",
    "table --limit many a.pt.trace.json": "invalid number of rows 'many': not a whole number",
    "cut --from 5ms --to 3ms a.pt.trace.json b.json": "--from 5ms is after --to 3ms",
    "cut --from 99s a.pt.trace.json b.json": "--from 99s is after the end of the trace",
    "memory --at 99s a.pt.trace.json": "99.0 s is not within the trace, which takes ",
    "ab --nope": "opstrobe ab: unknown option '--nope'; 'opstrobe ab --help' lists them",
    "ab program --pairs=20 --minuets=3": "unknown option '--minuets'; did you mean '--minutes'?",
    "archive --nope": "opstrobe archive: unknown option '--nope'; 'opstrobe archive --help' lists them",
    "archive query profiles": "opstrobe archive: 'query' is not a command; 'opstrobe archive --help' lists them",
    "archive lst profiles": "opstrobe archive: 'lst' is not a command; did you mean 'list'?",
    "tui --lvie": "opstrobe tui: unknown option '--lvie'; did you mean '--live'?",
    "cut --steps 7:3 a.pt.trace.json b.json": "invalid range of steps '7:3': not a step such as 3, or a first and a last one such as 3:5",
    "cut --steps 9 a.pt.trace.json b.json": "the trace has no step 9 (choose from 0 to 3)",
    "cut --threads 99 a.pt.trace.json b.json": "the trace has no thread 99 (choose from ",
    "cut --threads= a.pt.trace.json b.json": "invalid list of threads '': not numbers separated by commas",
    "diff a.pt.trace.json": "2 traces are required, only 1 given",
    "analyze critical_path --annotation nowhere a.pt.trace.json": "no event's name contains 'nowhere'; the annotations are: ",
}


@pytest.mark.parametrize("words", SLIPS)
def test_slips(opstrobe, traces, words):
    process = opstrobe(*words.split(), cwd=traces)
    assert process.returncode == USAGE and not process.stdout
    assert SLIPS[words] in process.stderr
    assert not (traces / "b.json").exists()


def test_analyses_are_listed_by_help(opstrobe, traces):
    listed = opstrobe("analyze", "--list", cwd=traces).stdout.splitlines()
    shown = opstrobe("analyze", "--help", cwd=traces).stdout
    assert len(listed) > 30 and all(f"  {line}" in shown for line in listed)


def test_the_installed_manual_page_has_the_help_of_all_commands(opstrobe):
    page = pathlib.Path(sys.prefix, "share/man/man1/opstrobe.1").read_text()
    assert page == opstrobe("--man").stdout and "Its options are listed by" not in page
    assert r"\-\-pairs" in page and r"\-\-older\-than" in page


def test_help_of_table_lists_the_keys(opstrobe, traces):
    shown = opstrobe("table", "--sort-by", "height", "a.pt.trace.json", cwd=traces)
    assert shown.returncode != 0
    keys = shown.stderr.partition("choose from ")[2].partition(")")[0].split(", ")
    assert len(keys) > 10
    listed = opstrobe("table", "--help").stdout.partition("Keys:\n")[2].partition("  --limit")[0]
    assert sorted(listed.replace(",", " ").split()) == sorted(keys)
    for key in keys:
        assert opstrobe("table", "--sort-by", key, "a.pt.trace.json", cwd=traces).returncode == 0


@pytest.mark.parametrize("command", ["kernels", "modules", "memory", "lines", "table"])
def test_names_of_the_limit(opstrobe, traces, command):
    """The former names give the same."""
    former = "--row-limit" if command == "table" else "--top"
    now, then = (opstrobe(command, name, "1", "a.pt.trace.json", cwd=traces) for name in ("--limit", former))
    assert now.returncode == then.returncode == OK and now.stdout == then.stdout
    assert "--limit N" in opstrobe(command, "--help", cwd=traces).stdout


NOTHING = {
    "no events": [],
    "memory alone": [{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
                      "args": {"Device Type": 0, "Device Id": -1, "Addr": 64, "Bytes": 8, "Total Allocated": 8}}],
    "kernels alone": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 9, "args": {}}],
    "labels alone": [{"ph": "X", "cat": "user_annotation", "name": "epoch", "pid": 1, "tid": 1, "ts": 5, "dur": 9}],
    "odd steps": [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{name}", "pid": 1, "tid": 1, "ts": ts, "dur": 9}
                  for ts, name in enumerate(["", "last", "1.5", "-1", "\u00fc|x", "9" * 40, "1", "1"])],
}  # fmt: skip


@pytest.mark.parametrize("what", NOTHING)
@pytest.mark.parametrize("command", sorted(TABLES))
def test_traces_that_lack_what_a_command_is_for(opstrobe, traces, command, what):
    """Each says so in every form, and fails at none."""
    (traces / "odd.json").write_text(json.dumps({"traceEvents": NOTHING[what]}))
    for form in ("text", "json", "csv", "markdown"):
        process = opstrobe(*words_of(command, "odd.json"), "--format", form, cwd=traces)
        assert process.returncode == OK and not process.stderr and process.stdout.strip(), (form, process.stderr)
        if form == "json":
            json.loads(process.stdout)


def test_directories_without_traces(opstrobe, traces):
    """What else lies there is passed over, and where traces lie deeper it is said where."""
    (traces / "logs" / "run1").mkdir(parents=True)
    (traces / "logs" / "notes.txt").write_text("x")
    process = opstrobe("views", "logs", cwd=traces)
    assert process.returncode == FAILED and "no trace (" in process.stderr and "in 'logs'\n" in process.stderr
    (traces / "logs" / "run1" / "c.pt.trace.json").write_text(trace())
    process = opstrobe("views", "logs", cwd=traces)
    assert process.returncode == FAILED and process.stderr.endswith("in 'logs'; there is in 'logs/run1'\n")
    (traces / "logs" / "run1" / "notes.txt").write_text("x")
    assert opstrobe("views", "logs/run1", cwd=traces).returncode == OK


def test_large_traces_get_advice_too(opstrobe, tmp_path):
    """Two million events were the limit once."""
    events = 2_100_000
    with open(tmp_path / "large.pt.trace.json", "w") as file:
        file.write('{"traceEvents":[')
        for at in range(events):
            file.write(f'{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{at},"dur":1}},\n')
        file.write('{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":3000000,"dur":1}]}')
    process = opstrobe("views", "large.pt.trace.json")
    assert process.returncode == OK, process.stderr
    assert re.search(r"^advice\n.*rules applied", process.stdout, re.MULTILINE | re.DOTALL)


def on_terminal(words, columns, directory, environment):
    """What a terminal of that many columns shows."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [OPSTROBE, *words], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=inner
    )
    os.close(inner)
    shown = b""
    while True:
        try:
            more = os.read(outer, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(outer)
    assert process.wait(timeout=60) == OK
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["views", "advise", "memory", "diff"])
@pytest.mark.parametrize("columns", [60, 71, 80, 100])
def test_text_fits_the_terminal(traces, environment, command, columns):
    """The overview cuts names; prose goes on below, but a word stays whole. Colours take no columns."""
    rows = json.loads(trace())["traceEvents"]
    for row in rows:
        row["name"] = row["name"].replace("gemm", "void cutlass::Kernel<gemm> " * 9)
        row["name"] = row["name"].replace("aten::mm", "aten::scaled_dot_product_of_a_long_name_indeed_" + "\u00e4" * 60)
        row["name"] = row["name"].replace("train.py", "a/very/long/path/to/the/program/that/trains/train.py")
    (traces / "long.json").write_text(
        json.dumps({"traceEvents": [*rows, {"ph": "f", "id": 7, "ts": 1, "pid": 1, "tid": 1}]})
    )
    shown = on_terminal(
        words_of(command, "long.json"), columns, traces, {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    )
    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in shown.splitlines()]
    widths = {len(line): line for line in lines if command == "views" or " " in line.strip()}  # no word is broken
    assert max(widths) <= columns, widths[max(widths)]
    if command in ("views", "diff"):
        assert max(widths) > columns - 10
    assert ("\x1b" in shown) == (command == "views")


WIDE = [
    ["kernels"],
    ["kernels", "--by-operator"],
    ["modules"],
    ["table"],
    ["table", "--sort-by", "cpu_memory_usage", "--group-by-input-shape"],
    ["lines"],
    ["analyze", "gpu_kernel_breakdown.by_kernel"],
    ["analyze", "temporal_breakdown"],
]


@pytest.mark.parametrize("words", WIDE, ids=" ".join)
def test_tables_fit_the_terminal(opstrobe, traces, environment, words):
    """Names are cut, then columns left out, and these are named. In a pipe, and where there is room, nothing is lost."""
    kernel = "void cutlass::Kernel<gemm, " + "float, " * 20 + "8>"
    line = "a/very/long/path/to/the/program/that/trains/a/model/of/many/layers/train.py(7): step"
    text = trace().replace('"gemm"', json.dumps(kernel)).replace("train.py(7): step", line)
    calls = [{"ph": "X", "cat": "python_function", "name": f"nn.Module: {'Attention' * 9}_0", "pid": 1, "tid": 1,
              "ts": 1000 * step + 2, "dur": 700, "args": {"Python id": 2 * step + 2, "Python parent id": 2 * step + 1,
                                                         "Python module id": 0}}
             for step in range(STEPS)]  # fmt: skip
    rows = json.loads(text)["traceEvents"] + calls
    (traces / "long.json").write_text(json.dumps({"traceEvents": rows}))
    words = [*words, "long.json"]

    def columns_of(shown):
        lines = [line for line in shown.splitlines() if line.strip("- ")]
        return re.split(r" {2,}", lines[0].strip())

    piped = opstrobe(*words, cwd=traces).stdout
    assert "no room for" not in piped
    if words[0] in ("kernels", "lines", "analyze") and words[1] != "temporal_breakdown":
        assert (line.split("(")[0] if words[0] == "lines" else kernel) in piped
    for columns in (50, 80, 110):
        shown = on_terminal(words, columns, traces, environment)
        lines = shown.splitlines()
        assert max(map(len, lines)) <= columns, max(lines, key=len)
        missing = [column for column in columns_of(piped) if column not in columns_of(shown)]
        narrow = re.search(r"(?s)no\s+room\s+for\s(.*?):\s+a\s+wider", shown)
        assert missing == (re.split(r", ", narrow[1].replace("\n", " ")) if narrow else [])
        assert columns_of(shown) == [column for column in columns_of(piped) if column not in missing]
        assert columns > 50 or missing
        assert "cpu_memory_usage" not in words or "CPU Mem" not in missing  # what it is sorted by
    wide = on_terminal(words, 500, traces, environment)
    assert columns_of(wide) == columns_of(piped) and "no room for" not in wide and "…" not in wide


NOT_FROM_A_PIPE = {"report"}  # it is read more than once, and says so


@pytest.mark.parametrize("command", sorted({*TABLES, *FILES} - NOT_FROM_A_PIPE))
def test_standard_input_directories_and_patterns(opstrobe, traces, command):
    """All say the same as the file itself."""

    def answer(first, **options):
        process = opstrobe(*words_of(command, first), cwd=traces, **options)
        assert process.returncode == OK, process.stderr
        written = traces / "out.json"
        text = written.read_text() if written.exists() else process.stdout
        written.unlink(missing_ok=True)
        text = re.sub(r"(?m)^( *File +)-$", r"\1NAME", text)
        return re.sub(r"(alone/)?[a-c]\.pt\.trace\.json|/dev/stdin|\b[ac]\b|stdin|\balone\b|\bdev\b", "NAME", text)

    with (traces / "alone" / "c.pt.trace.json").open() as file:
        from_input = answer("-", stdin=file)
    assert answer("alone/c.pt.trace.json") == from_input == answer("alone") == answer("alone/*.json")


def test_deep_stacks_are_cut_with_a_message(opstrobe, tmp_path):
    events = [
        {
            "ph": "X",
            "cat": "python_function",
            "name": f"a.py(1): f{i}",
            "pid": 1,
            "tid": 1,
            "ts": i,
            "dur": 9000 - 2 * i,
        }
        for i in range(2010)
    ]
    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 3000, "dur": 1})
    (tmp_path / "deep.json").write_text(json.dumps({"traceEvents": events}))
    done = opstrobe("convert", "deep.json", "deep.folded")
    assert done.returncode == 0
    assert "10 stacks of more than 2000 frames are cut short at '[truncated]'" in done.stderr
    assert ";a.py(1):_f1999;[truncated];aten::mm 1000\n" in (tmp_path / "deep.folded").read_text()
    assert opstrobe("convert", "deep.json", "deep.speedscope.json").stderr == (
        "opstrobe: wrote deep.speedscope.json: 2,011 events\n"
    )


def test_a_report_is_made_of_files(opstrobe, traces):
    process = opstrobe("report", "-o", "out.json", "-", cwd=traces, input=trace())
    assert (
        process.returncode == USAGE
        and "must be a regular file" in process.stderr
        and not (traces / "out.json").exists()
    )


@pytest.mark.parametrize("command", sorted({*TABLES, *FILES} - NOT_FROM_A_PIPE))
def test_ctrl_c_leaves_nothing(traces, environment, command):
    """While a trace is read from a pipe that does not end."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [OPSTROBE, *words_of(command, "-")],
        cwd=traces,
        env=environment,
        stdin=reader,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(reader)
    # More than a pipe holds: what can be written has been read, so the command is at work.
    os.write(writer, b'{"traceEvents": [' + b" " * (1 << 16))
    os.write(writer, b" ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == -signal.SIGINT and out == b"" and b"Traceback" not in err
    assert not (traces / "out.json").exists()


@pytest.mark.parametrize("command", sorted({*TABLES, *FILES}))
def test_a_truncated_file_is_named_by_every_command(opstrobe, traces, command):
    """One line on standard error, and the list of diagnostics in JSON; nothing of the kind for a complete file."""
    text = trace()
    (traces / "half.json").write_text(text[: text.index('"ProfilerStep#2"')])
    for file, lines in [("a.pt.trace.json", 0), ("half.json", 1)]:
        words = words_of(command, file)
        words = [word.replace("1:2", "0:1") for word in words] + (["--format", "json"] if command in TABLES else [])
        process = opstrobe(*words, cwd=traces)
        said = [line for line in process.stderr.splitlines() if "the text ends early" in line]
        assert len(said) == lines and all(f"'{file}'" in line for line in said), process.stderr
        if command in TABLES:
            markdown = opstrobe(*words[:-1], "markdown", cwd=traces).stdout
            assert markdown.startswith("> **Warning:** `half.json`: the text ends early") == (lines == 1), markdown[
                :200
            ]
            found = json.loads(process.stdout).get("diagnostics", [])
            assert [(each["source"], each["kind"], each["count"]) for each in found] == [(file, "truncated", 1)] * lines


def test_a_truncated_file_in_a_run_and_from_python(opstrobe, traces):
    """It is read more than once, and named once."""
    text = trace()
    (traces / "run").mkdir()
    for name in ("r0", "r1", "r2"):
        part = text[: text.index('"ProfilerStep#2"')] if name == "r1" else text
        (traces / "run" / f"{name}.pt.trace.json").write_text(part)
    for words in [["views"], ["analyze", "temporal_breakdown"], ["advise"], ["kernels"]]:
        process = opstrobe(*words, "--format", "json", "run", cwd=traces)
        assert process.stderr.count("r1.pt.trace.json': the text ends early") == 1
        assert [each["kind"] for each in json.loads(process.stdout)["diagnostics"]] == ["truncated"]
    half, whole = (opstrobe_package.read(traces / "run" / f"{name}.pt.trace.json") for name in ("r1", "r0"))
    assert whole.is_complete and whole.diagnostics == []
    assert not half.is_complete and [each["kind"] for each in half.diagnostics] == ["truncated"]


def test_all_rows_by_shape_and_the_times_of_devices(opstrobe, traces):
    """JSON has every row, whatever their number; the table as data has the columns of its text."""
    rows = json.loads(trace())["traceEvents"]
    rows += [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10_000 + 10 * i, "dur": 5,
         "args": {"External id": 100 + i, "Input Dims": [[8, i]], "Input type": ["float"]}}
        for i in range(40)
    ]  # fmt: skip
    (traces / "shapes.json").write_text(json.dumps({"traceEvents": rows}))
    shapes = json.loads(opstrobe("views", "--format", "json", "shapes.json", cwd=traces).stdout)[
        "operators_by_input_shape"
    ]
    assert shapes["distinct"] == len({row["input_shape"] for row in shapes["rows"]}) == 40  # one is that of the steps
    assert shapes["top"] == shapes["rows"][:30]
    words = ["table", "--group-by-input-shape", "--format", "json", "shapes.json"]
    table = json.loads(opstrobe(*words, cwd=traces).stdout)["table"]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert sum(row["self_device_time_total"] for row in rows if row["name"] == "aten::mm") == 60 * STEPS
    text = opstrobe("table", "--row-limit", "2", "shapes.json", cwd=traces).stdout
    assert text.endswith("and 3 more; '--limit 5' shows all\n"), text


def test_what_is_made_of_a_trace_that_ends_early_says_so(opstrobe, traces):
    """A part, a copy and a merged trace are well-formed, and lack what their source lacks."""
    whole = (traces / "a.pt.trace.json").read_text()
    (traces / "half.json").write_text(whole[: whole.rindex("{", 0, len(whole) * 9 // 10)])
    for command, *words in (
        ["cut", "--from", "0us", "half.json", "part.json"],
        ["convert", "half.json", "copy.json.gz"],
        ["merge", "-o", "run.json", "half.json", "b.pt.trace.json"],
        ["convert", "part.json", "part-of-part.json"],
    ):
        written = words[1] if command == "merge" else words[-1]
        made = opstrobe(command, *words, cwd=traces)
        assert made.returncode == OK, made.stderr
        shown = opstrobe("views", "--format", "json", written, cwd=traces)
        assert f"'{written}': the text ends early" in shown.stderr
        kinds = {entry["kind"] for entry in json.loads(shown.stdout)["diagnostics"]}
        assert "truncated" in kinds, (written, kinds)
        assert "the text ends early" in opstrobe("views", written, cwd=traces).stdout
        assert opstrobe("validate", written, cwd=traces).returncode == FAILED


def test_merged_ranks_keep_their_names_and_number_of_steps(opstrobe, traces):
    """Perfetto's form has the names that JSON has; steps of two ranks with the same numbers are the same steps."""
    for file in ("run.json", "run.pftrace"):
        assert opstrobe("merge", "-o", file, "a.pt.trace.json", "b.pt.trace.json", cwd=traces).returncode == OK
    names = {
        row["args"]["name"]
        for row in json.loads((traces / "run.json").read_text())["traceEvents"]
        if row["name"] == "process_name"
    }
    assert len(names) == 4 and len({name for name in names if name.endswith("python")}) == 2
    written = (traces / "run.pftrace").read_bytes()
    assert all(name.encode() in written for name in names), names
    assert opstrobe("convert", "run.pftrace", "back.json", cwd=traces).returncode == OK
    back = json.loads((traces / "back.json").read_text())["traceEvents"]
    assert {name for name in names if name.endswith("python")} <= {
        row["args"]["name"] for row in back if row["name"] == "process_name"
    }
    value = json.loads(opstrobe("info", "--format", "json", "run.json", cwd=traces).stdout)["value"]
    assert value["steps"] == STEPS


def test_the_page_of_rules_is_that_of_the_rules(opstrobe):
    """docs/reference/rules.md is written by the command: run it again after a change of a rule's texts."""
    process = opstrobe("advise", "--list-rules", "--format", "markdown")
    assert process.returncode == OK, process.stderr
    page = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "rules.md"
    written_by = "opstrobe advise --list-rules --format markdown > docs/reference/rules.md"
    assert process.stdout == page.read_text(), f"run {written_by}"


def test_rules_are_listed_without_a_trace(opstrobe):
    process = opstrobe("advise", "--list-rules")
    assert process.returncode == OK and "unfused-attention" in process.stdout
    columns = json.loads(opstrobe("advise", "--list-rules", "--format", "json").stdout)["table"]["columns"]
    assert columns[:2] == ["id", "title"]
    process = opstrobe("advise", "--list-rules", "trace.json")
    assert process.returncode == USAGE and "takes no trace" in process.stderr
    process = opstrobe("advise")
    assert process.returncode == USAGE and "no trace given" in process.stderr


def test_the_package_has_the_manual_page_and_completion(opstrobe):
    share = OPSTROBE.parents[1] / "share"
    page = (share / "man/man1/opstrobe.1").read_text()
    assert page.startswith(".TH OPSTROBE 1") and "kernels" in page
    script = share / "bash-completion/completions/opstrobe"
    completed = f"source {script}; COMP_WORDS=(opstrobe kern) COMP_CWORD=1; _opstrobe; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", completed], env={"PATH": f"{OPSTROBE.parent}:/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.stdout == "kernels\n", done.stderr
    assert (share / "zsh/site-functions/_opstrobe").is_file()
    assert (share / "fish/vendor_completions.d/opstrobe.fish").is_file()
