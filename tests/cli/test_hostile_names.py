# SPDX-License-Identifier: Apache-2.0
"""Names that a trace holds reach no terminal, spreadsheet or page as anything but text: every command in every format."""

import csv
import io
import json
import re
import subprocess

import pytest
from test_every_command import TABLES, words_of

ACTS = "\x1b[31m\x1b]0;title\x07\x00\x9b2J\u202e\u2066\u2028\x7f"
MARKUP = "<img src=x onerror=alert(1)> ![x](http://a.example/x) @team `code` | www.b.example"
NAMES = [f"=HYPERLINK(1){ACTS}{MARKUP}\nnext", f"@SUM(1){ACTS}{MARKUP}", f"-1+cmd{ACTS}{MARKUP}"]
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]")


def trace():
    """Steps with hostile names wherever a trace has names: operators, kernels, lines, modules, threads, metadata."""
    formula, at_sign, minus = NAMES
    rows = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": formula}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": at_sign}},
    ]
    for step in range(3):
        at, of = 10000 * step, {"External id": step + 1, "correlation": step + 1, "stream": 7, "device": 0}
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 9900},
            {"ph": "X", "cat": "user_annotation", "name": minus, "ts": at + 1, "dur": 9800},
            {"ph": "X", "cat": "python_function", "name": f"{formula}.py(7): {at_sign}", "ts": at + 2, "dur": 9700,
             "args": {"Python id": 2 * step + 1, "Python parent id": None}},
            {"ph": "X", "cat": "python_function", "name": f"nn.Module: {minus}_0", "ts": at + 3, "dur": 9600,
             "args": {"Python id": 2 * step + 2, "Python parent id": 2 * step + 1, "Python module id": 0}},
            {"ph": "X", "cat": "cpu_op", "name": formula, "ts": at + 10, "dur": 4000,
             "args": {"External id": step + 1, "Input Dims": [[8]], "Input type": [minus], at_sign: formula}},
            {"ph": "X", "cat": "cpu_op", "name": f"aten::item{ACTS}{MARKUP}", "ts": at + 5000, "dur": 3000},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 20, "dur": 5, "args": of},
            {"ph": "X", "cat": "kernel", "name": at_sign, "ts": at + 40, "dur": 600, "pid": 0, "tid": 7, "args": of},
            {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "ts": at + 30,
             "args": {"Device Type": 0, "Device Id": -1, "Addr": 64 + step, "Bytes": 4096, "Total Allocated": 4096}},
        ]  # fmt: skip
    meta = {"schemaVersion": 1, formula: at_sign, "host_name": minus, "distributedInfo": {"backend": formula}}
    return {**meta, "traceEvents": [{"pid": 1, "tid": 1, **row} for row in rows]}


@pytest.fixture
def hostile(tmp_path):
    """Two such traces in files whose names are hostile, too."""
    names = [f"{letter}\x1b]0;x\x07\x9b\u202e<img>@team.pt.trace.json" for letter in "ab"]
    for name in names:
        (tmp_path / name).write_text(json.dumps(trace()))
    return names


CALLS = [
    *[[command] for command in sorted(TABLES) if command != "diff"],
    ["kernels", "--by-operator"],
    ["modules", "--by-class"],
    ["table", "--group-by-input-shape"],
    *[["analyze", name] for name in ("events", "gpu_kernel_breakdown.by_kernel", "info", "cuda_kernel_launch_stats")],
]  # fmt: skip


def without_code(markdown):
    """Markdown outside code spans and fences."""
    return re.sub(r"(?s)(`+)(?!`).+?(?<!`)\1(?!`)", "", markdown)


def check(printed, form):
    lines = printed.splitlines() if form != "csv" else []
    found = set(FORBIDDEN.findall(printed)) - ({"\x7f"} if form == "json" else set())  # which no terminal acts on
    assert not found
    assert not any(line.startswith("next") for line in lines)
    if form == "json":
        json.loads(printed)
    if form == "csv":
        for row in csv.reader(io.StringIO(printed)):
            for cell in row:
                assert not re.match(r"[=@\t\r]|[-+](?!$|\d*\.?\d*(e[-+]?\d+)?$)", cell), cell
    if form == "markdown":
        for sign in ("<img", "](", "@team", "@SUM", "://a.", "www."):
            assert sign not in without_code(printed), (sign, printed)


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
@pytest.mark.parametrize("words", [*CALLS, ["diff"]], ids=" ".join)
def test_names_of_a_trace_are_only_text(opstrobe, tmp_path, hostile, words, form):
    first, second = hostile
    extra = {"analyze": words[1:] or ["key_averages"]}.get(words[0], words[1:])
    paths = [first, second] if words[0] == "diff" else [first]
    process = opstrobe(words[0], *extra, "--format", form, *paths)
    if process.returncode == 2 and words[0] == "analyze":
        pytest.fail(process.stderr)
    assert process.returncode in (0, 1), process.stderr
    assert process.stdout
    check(process.stdout, form)
    check(process.stderr, "text")


@pytest.mark.parametrize("command", ["views", "memory", "modules"])
def test_headings_of_several_traces(opstrobe, hostile, command):
    process = opstrobe(command, *hostile)
    assert process.returncode == 0 and "--- a" in process.stdout
    check(process.stdout, "text")


def test_pages_and_reports(opstrobe, tmp_path, hostile):
    process = opstrobe("report", "--format", "markdown", *hostile)
    assert process.returncode == 0, process.stderr
    check(process.stdout, "markdown")
    assert opstrobe("report", "-o", "out.html", hostile[0]).returncode == 0
    assert "<img" not in (tmp_path / "out.html").read_text().replace("<img>@team.pt", "")


@pytest.mark.parametrize("command", sorted(TABLES))
def test_errors_about_files(opstrobe, tmp_path, command):
    """Of missing files, and of those that are not traces."""
    name = "x\x1b]0;x\x07\x9b\u202e\nopstrobe: all is well.json"
    for text in (None, "<html>\x1b[2J"):
        if text:
            (tmp_path / name).write_text(text)
        process = opstrobe(*words_of(command, name))
        assert process.returncode == 1 and "x?" in process.stderr
        check(process.stderr, "text")
        assert "\nopstrobe: all is well" not in process.stderr


@pytest.mark.parametrize(
    "words",
    ["run NAME", "run --steps NAME", "prove NAME", "sql .schema NAME", "archive add to NAME",
     "archive trend NAME", "roof NAME"],
)  # fmt: skip
def test_errors_of_commands_in_python(opstrobe, words):
    """About files that are missing, and about wrong arguments."""
    name = "x\x1b]0;x\x07\x9b\u202e\nopstrobe: all is well.json"
    process = opstrobe(*(name if word == "NAME" else word for word in words.split()), stdin=subprocess.DEVNULL)
    assert process.returncode in (1, 2) and ("x?" in process.stderr or "x\\x1b" in process.stderr), process.stderr
    check(process.stderr, "text")
    assert "\nopstrobe: all is well" not in process.stderr


@pytest.mark.parametrize("form", ["text", "markdown", "csv"])
def test_names_in_answers_to_queries(opstrobe, hostile, form):
    process = opstrobe("sql", "--format", form, "select name, -1.5 as number, name from events", hostile[0])
    assert process.returncode == 0 and "img" in process.stdout and "-1.5" in process.stdout, process.stderr
    check(process.stdout, form)


def test_names_in_gates(opstrobe, tmp_path, hostile):
    """`diff --gate counts` prints the names of operators whose number grew."""
    document = trace()
    document["traceEvents"] = [row for row in document["traceEvents"] if row.get("cat") != "cpu_op"]
    (tmp_path / "base.json").write_text(json.dumps(document))
    for form in ("text", "github"):
        process = opstrobe("diff", "--gate", "counts", "--format", form, "base.json", hostile[0])
        assert process.returncode == 3, process.stderr
        check(process.stdout, "text")
