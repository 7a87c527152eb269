# SPDX-License-Identifier: Apache-2.0
"""What a trace does not have is named, with what to record; a file that ends early has no gains."""

import json

import pytest

HOST = [
    {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 1000 * i, "dur": 1000}
    for i in range(3)
]
HOST += [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000 * i + 850, "dur": 100}
    for i in range(3)
]
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WAITS = [
    {"ph": "X", "cat": "user_annotation", "name": LOADER, "pid": 1, "tid": 1, "ts": 1000 * i + 10, "dur": 800}
    for i in range(3)
]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["kernels"], "no kernels: the trace has no device work"),
        (["kernels", "--by-operator"], "no kernels: the trace has no device work"),
        (["kernels", "--by-category"], "no kernels: the trace has no device work"),
        (
            ["modules"],
            "no calls of modules were recorded: record with opstrobe run, or with with_modules=True",
        ),
        (["memory"], "no allocations were recorded: record with profile_memory=True or opstrobe run --memory"),
        (["lines"], "no source lines: record with opstrobe run, or with with_stack=True"),
        (["analyze", "threads"], "no states of threads: only recordings of Opstrobe have them"),
        (
            ["analyze", "data_flow"],
            "no memory of operators: record with profile_memory=True and record_shapes=True or opstrobe run --memory --record-shapes",
        ),
        (["analyze", "queue_length_summary"], "no results: the traces have no such device work"),
        (["analyze", "roofline"], "no results: the traces have no such device work"),
        (["analyze", "memory_bw_time_series"], "no memory copies or sets on a device"),
        (
            ["analyze", "potential_stragglers"],
            "no stragglers: the traces have no steps with communication between ranks",
        ),
        (["analyze", "profiler_steps", "--where", "dur > 1e9"], "no results: the filter keeps no such events"),
        (["analyze", "parse"], "no known GPU"),
        (["analyze", "parse", "--rules", "hta"], "UNKNOWN GPU"),
        (["validate"], "no errors"),
    ],
    ids=" ".join,
)
def test_a_table_without_rows_says_why(opstrobe, tmp_path, command, said):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": HOST}))
    done = opstrobe(*command, "t.json")
    assert done.returncode == 0 and said in done.stdout


@pytest.mark.parametrize(
    "id, said",
    [
        ("modules", "no calls of modules were recorded: record with opstrobe run, or with with_modules=True"),
        ("memory", "no allocations were recorded: record with profile_memory=True or opstrobe run --memory"),
        ("kernels", "no kernels: the trace has no device work"),
        ("lines", "no source lines: record with opstrobe run, or with with_stack=True"),
        ("threads", "no states of threads: only recordings of Opstrobe have them"),
        ("queue_length_summary", "no results: the traces have no such device work"),
        ("memory_bw_time_series", "no memory copies or sets on a device"),
        ("potential_stragglers", "no stragglers: the traces have no steps with communication between ranks"),
    ],
)
def test_json_and_markdown_say_why_an_analysis_is_empty(opstrobe, tmp_path, id, said):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": HOST}))
    command = [id] if id in ("modules", "memory", "kernels", "lines") else ["analyze", id]
    assert json.loads(opstrobe(*command, "--format", "json", "t.json").stdout)["empty"] == said
    assert said in opstrobe(*command, "--format", "markdown", "t.json").stdout
    full = json.loads(opstrobe("analyze", "key_averages", "--format", "json", "t.json").stdout)
    assert full["table"]["rows"] and "empty" not in full


def test_a_trace_without_steps_says_why(opstrobe, tmp_path):
    host = [event for event in HOST if "ProfilerStep" not in event["name"]]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": host}))
    done = opstrobe("analyze", "profiler_steps", "t.json")
    assert (done.returncode, done.stdout) == (
        0,
        "(no steps: the traces have no events of steps, ProfilerStep#N, which opstrobe run and profile.step() record)\n",
    )


def test_links_that_torch_leaves_out_are_listed_by_validate_alone(opstrobe, tmp_path):
    link = {"ph": "f", "id": 7, "pid": 1, "tid": 9, "ts": 3, "cat": "ac2g", "name": "ac2g"}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [*HOST, link]}))
    assert "a link to an event that is not in the file; left out" in opstrobe("validate", "t.json").stdout
    for words in ([], ["--format", "markdown"]):
        shown = opstrobe("views", *words, "t.json").stdout
        assert "aten::" in shown and "left out" not in shown


def test_modules_without_paths_are_counted_by_name(opstrobe, tmp_path):
    calls = [
        {
            "ph": "X",
            "cat": "python_function",
            "name": f"nn.Module: {name}",
            "pid": 1,
            "tid": 1,
            "ts": 10 * i,
            "dur": 5,
            "args": {"Python module id": 0, "Python id": i},
        }
        for i, name in enumerate(["Linear_0", "ReLU_0", "Linear_0"])
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": calls}))
    facts = json.loads(opstrobe("info", "--format", "json", "t.json").stdout)["value"]
    assert (facts["modules"], facts["module_calls"]) == (2, 3)


@pytest.mark.parametrize("command", ["views", "advise", "kernels", "modules", "memory", "lines", "info"])
def test_a_file_that_ends_early_is_reported_by_every_command_and_has_no_gains(opstrobe, tmp_path, command):
    whole = json.dumps({"traceEvents": [*WAITS, *HOST]})
    (tmp_path / "whole.json").write_text(whole)
    (tmp_path / "early.json").write_text(whole[:-40])
    done = opstrobe(command, "early.json")
    assert "the text ends early; what came before is read" in done.stderr
    assert "saves about" not in done.stdout
    if command == "advise":
        assert "The trace ends early, so gains are unknown" in done.stdout
        assert "saves about" in opstrobe(command, "whole.json").stdout


def test_a_directory_may_have_other_files(opstrobe, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/t.json").write_text(json.dumps({"traceEvents": HOST}))
    (tmp_path / "run/notes.json").write_text(json.dumps({"schema": "notes", "nodes": 3}))
    for id in ("key_averages", "threads", "data_flow"):
        done = opstrobe("analyze", id, "run", "--format", "json")
        assert done.returncode == 0 and "table" in json.loads(done.stdout), done.stderr
    done = opstrobe("analyze", "threads", "run/notes.json")
    assert done.returncode == 1 and "'run/notes.json' is not a trace" in done.stderr
