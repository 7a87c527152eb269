# SPDX-License-Identifier: Apache-2.0
"""opstrobe analyze: call graphs, launches and critical paths of the shared traces, against plain oracles written from the
definitions, where ours are not the reference's figures on purpose; and the path drawn on a trace, against the reference's own
file."""

import bisect
import collections
import gzip
import json
import subprocess
from decimal import Decimal

import pytest
from installed import OPSTROBE
from test_analyze import FOLDER, shared


def load(path):
    with gzip.open(path) as file:
        return json.load(file, parse_float=Decimal)["traceEvents"]


def ask(analysis, path, **args):
    call = [OPSTROBE, "analyze", analysis, "--format", "json", "--args", json.dumps(args), path]
    return json.loads(subprocess.run(call, capture_output=True, check=True, timeout=300).stdout, parse_float=Decimal)


def spans_of(events, index):
    event = events[index]
    start = Decimal(event["ts"])
    return start, start + max(Decimal(event["dur"]), 0)


def is_span(event):
    return "dur" in event and event.get("cat") and event["cat"] != "Trace"


def stream_of(event):
    stream = (event.get("args") or {}).get("stream")
    return stream if isinstance(stream, int) else -1


def plain_callers(events, rows):
    """The caller of each row of a thread: the latest to start before it that still runs at half of its time."""
    order = sorted(rows, key=lambda row: (spans_of(events, row)[0], -spans_of(events, row)[1], row))
    callers = {}
    running = []  # a row that has ended does not call rows that start later
    for row in order:
        start, end = spans_of(events, row)
        running = [other for other in running if spans_of(events, other)[1] >= start]
        callers[row] = None
        for other in reversed(running):
            other_end = spans_of(events, other)[1]
            if (start == end) or (other_end > start and 2 * other_end >= start + end):
                callers[row] = other
                break
        running.append(row)
    return callers


@shared
@pytest.mark.parametrize(
    "name", ["amd_mi250/trace", "mi_normalization/trace", "h100_bert_small/trace", "vllm_decode_graph/trace"]
)
def test_callers_are_as_defined(name):
    """Of one-step traces, of which the step filter keeps all; kernels of stream 0 have callers."""
    path = FOLDER / f"{name}.json.gz"
    events = load(path)
    table = ask("call_graph", path, nodes=True)["table"]
    ours = {row[1]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    threads = collections.defaultdict(list)
    for index in ours:
        if stream_of(events[index]) == -1:
            threads[events[index]["pid"], events[index]["tid"]].append(index)
    compared = 0
    for rows in threads.values():
        callers = plain_callers(events, rows)
        for row in rows:
            top_of_autograd = callers[row] is None and ours[row]["parent"] is not None
            assert ours[row]["parent"] == callers[row] or top_of_autograd, events[row]
            compared += 1
    kernels = [index for index in ours if stream_of(events[index]) != -1]
    for kernel in kernels:
        launch = events[ours[kernel]["parent"]]
        assert launch["args"]["correlation"] == events[kernel]["args"]["correlation"]
        assert stream_of(launch) == -1
    assert compared > 50 and kernels


@shared
def test_launches_are_their_own_threads():
    """Where the reference takes any thread's operator: the latest to start on the launch's thread that has it whole."""
    path = FOLDER / "mtia_train" / "rank-0.json.gz"
    events = load(path)
    table = ask("aten_op_kernels_and_delay", path)["value"]["0"]
    step_starts = [Decimal(e["ts"]) for e in events if is_span(e) and e["name"].startswith("ProfilerStep")]
    last = (
        max(step_starts)
        if len({e["name"] for e in events if e.get("name", "").startswith("ProfilerStep#")}) > 1
        else None
    )
    ops = collections.defaultdict(list)
    for index, event in enumerate(events):
        if is_span(event) and event["name"].startswith("aten::") and (last is None or Decimal(event["ts"]) < last):
            ops[event["pid"], event["tid"]].append((Decimal(event["ts"]), -Decimal(event["dur"]), index))
    for rows in ops.values():
        rows.sort()
    worked = {
        e["args"]["correlation"] for e in events if is_span(e) and stream_of(e) != -1 and "correlation" in e["args"]
    }
    counts = collections.Counter()
    seen = set()
    for event in events:
        if not is_span(event) or not event["name"].startswith("runFunction") or stream_of(event) != -1:
            continue
        if (event.get("args") or {}).get("correlation") not in worked or (
            last is not None and Decimal(event["ts"]) >= last
        ):
            continue
        start, end = Decimal(event["ts"]), Decimal(event["ts"]) + Decimal(event["dur"])
        rows = ops[event["pid"], event["tid"]]
        for i in range(bisect.bisect_right(rows, (start, Decimal(1), 0)) - 1, -1, -1):
            if rows[i][0] - rows[i][1] >= end:
                if rows[i][2] not in seen:
                    seen.add(rows[i][2])
                    counts[events[rows[i][2]]["name"]] += 1
                break
    ours = collections.Counter()
    for name, _, count, *_ in table["rows"]:
        ours[name] += count
    assert ours == counts and counts


@shared
def test_the_overlay_is_the_references(tmp_path):
    folder = FOLDER / "simple_add"
    found = ask("critical_path", folder / "trace.json.gz", output_dir=str(tmp_path), only_show_critical_events=False)
    ours = load(found["value"]["overlay"])
    theirs = load(folder / "reference" / "overlaid_critical_path_trace.json.gz")

    def marked(events):
        return {
            (e["name"], e["ts"], e["tid"]) for e in events if e["ph"] == "X" and (e.get("args") or {}).get("critical")
        }

    def arrows(events):
        drawn = (e for e in events if e.get("cat") == "critical_path")
        return collections.Counter((e["ph"], e["tid"], e["ts"], e["args"]["type"], e["args"]["weight"]) for e in drawn)

    assert found["value"]["overlay"].endswith("overlaid_critical_path_trace.json.gz")
    assert len(ours) == len(theirs)
    assert marked(ours) == marked(theirs) and len(marked(ours)) == 624
    assert arrows(ours) == arrows(theirs) and sum(arrows(ours).values()) == 2 * 192


@shared
def test_what_is_not_on_the_path_is_left_out(tmp_path):
    path = FOLDER / "simple_add" / "trace.json.gz"
    found = ask("critical_path", path, output_dir=str(tmp_path))
    before = load(path)
    left = [e for e in load(found["value"]["overlay"]) if e["ph"] == "X"]
    kept = {"user_annotation", "python_function"}
    assert len([e for e in left if e["cat"] in kept]) == len([e for e in before if e["ph"] == "X" and e["cat"] in kept])
    others = [e for e in left if e["cat"] not in kept and e["cat"] != "Trace"]
    assert others and all(e["args"]["critical"] == 1 for e in others)


@shared
def test_events_name_their_patterns(tmp_path):
    path = FOLDER / "simple_add" / "trace.json.gz"
    options = {"operator_name": "aten::conv2d", "min_pattern_len": 1}
    rows = ask("frequent_cuda_kernel_sequences", path, output_dir=str(tmp_path), top_k=2, **options)["table"]["rows"]
    events = load(tmp_path / "overlaid_trace.json.gz")
    marked = collections.Counter()
    for event in events:
        marked.update((event.get("args") or {}).get("Patterns", {}).keys())
    assert len(events) == len(load(path))
    assert marked == {pattern: count * len(pattern.split("|")) for pattern, count, *_ in rows[:2]}


@pytest.mark.parametrize("with_legend", [True, False])
def test_what_is_in_no_pattern_is_compressed(tmp_path, with_legend):
    rows = [
        {"ph": "X", "cat": "Trace", "ts": 0, "dur": 90, "pid": "Spans", "tid": "PyTorch Profiler",
         "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
        {"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "args": {"a": {"b": 1}}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 3,
         "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 3,
         "args": {"correlation": 1, "stream": 7}},
        {"ph": "X", "cat": "cpu_op", "name": "say \"x\"", "pid": 1, "tid": 1, "ts": 20, "dur": 9, "args": {"a": 1}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    ][0 if with_legend else 1 :]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    options = {"operator_name": "mm", "min_pattern_len": 1, "output_dir": str(tmp_path), "compress_other_kernels": True}
    ((pattern, *_),) = ask("frequent_cuda_kernel_sequences", path, **options)["table"]["rows"]
    events = load(tmp_path / "overlaid_trace.json.gz")
    legend = events[0 if with_legend else -1]
    assert (legend["pid"], legend["name"].startswith("PyTorch Profiler")) == ("Spans", True)
    names = legend["args"].pop("Names")
    assert len(events) == len(rows) + (not with_legend) and sorted(names.values()) == ["cudaLaunchKernel", 'say "x"']
    for before, after in zip(rows, events, strict=False):
        name = before["name"]
        if name in names.values():
            assert names[after.pop("name")] == name
            assert after == {key: value for key, value in before.items() if key not in ("name", "args")}
        else:
            patterns = (after.get("args") or {}).pop("Patterns", None)
            assert after == before and patterns == ({pattern: 1} if name in ("mm", "k") else None)


def test_an_overlay_of_a_file_that_breaks_off_is_no_file(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}')
    call = [OPSTROBE, "analyze", "critical_path", "--args", json.dumps({"output_dir": str(tmp_path)}), path]
    ended = subprocess.run(call, capture_output=True, text=True)
    assert ended.returncode == 1 and "the text ends early" in ended.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_modules_and_their_kernels(tmp_path):
    """Of each call of a module that kernels run for: from the first of them to the end of the last; also in a copy."""
    rows, correlation = [], 0

    def call(name, ts, dur, kernels, cat="python_function"):
        nonlocal correlation
        rows.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur})
        for start, length in kernels:
            correlation += 1
            args = {"correlation": correlation}
            rows.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                         "ts": ts + 1 + correlation * 0.5, "dur": 0.25, "args": args})  # fmt: skip
            rows.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 7, "ts": start, "dur": length,
                         "args": {"stream": 7, "device": 2, **args}})  # fmt: skip

    call("nn.Module: Net_0", 100, 100, [])
    call("nn.Module: Linear_0", 110, 20, [(150, 10), (170, 5.5)])
    call("nn.Module: ReLU_0", 140, 20, [(180, 1)])
    call("nn.Module: Identity_0", 170, 10, [])
    call("aten::mm", 190, 9, [(300, 7)], "cpu_op")
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    table = ask("module_kernels", path, output_dir=str(tmp_path))["table"]
    found = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    wanted = {
        "nn.Module: Net_0": (150, 157, 4, 23.5),
        "nn.Module: Linear_0": (150, 25.5, 2, 15.5),
        "nn.Module: ReLU_0": (180, 1, 1, 1),
    }
    first = min(row["ts"] for row in rows)
    assert {
        row["name"]: (row["first_kernel_start"] + first, row["kernel_span"], row["num_kernels"], row["kernel_dur_sum"])
        for row in found
    } == wanted
    assert all(
        (rows[row["index"]]["name"], rows[row["index"]]["ts"] - first) == (row["name"], row["ts"]) for row in found
    )
    events = load(tmp_path / "aligned_trace.json.gz")
    assert events[: len(rows)] == rows
    spans = {
        (e["cat"], e["pid"], e["tid"], e["name"]): (
            e["ts"],
            e["dur"],
            e["args"]["kernels"],
            e["args"]["kernel_dur_sum"],
        )
        for e in events[len(rows) :]
    }
    assert spans == {("gpu_user_annotation", 2, 0, name): figures for name, figures in wanted.items()}
    (row,) = ask("module_kernels", path, names=["aten::"])["table"]["rows"]
    assert row[2] == "aten::mm"
