# SPDX-License-Identifier: Apache-2.0
"""Traces of any content, written in each format that Opstrobe also reads, have all that the format can hold when they are read again."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import opstrobe as package

# Text without surrogates, which JSON cannot hold.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PLAIN = st.sampled_from(["aten::mm", "Optimizer.step#SGD.step", "f<int>(x)", "αβγ", "a b", "-", "x\\y", 'q"q'])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
# Input type, dimensions, and value as torch prints it.
INPUTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["float", "long int", "c10::BFloat16"]), st.lists(st.integers(0, 9000), max_size=4), st.just("")),
        st.tuples(st.just("Scalar"), st.just([]), st.integers(-(2**63), 2**63 - 1).map(str) | st.sampled_from(["True", "False", "1.5", "-0.001"])),
        st.tuples(st.just("ScalarList"), st.just([]), st.lists(st.integers(-9, 9), max_size=5).map(str)),
        st.tuples(st.just("TensorList"), st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=3), st.just("")),
        st.tuples(st.just(""), st.just([]), st.just("")),
    ),
    max_size=4,
)  # fmt: skip
BASE_NS = 1_790_000_000_000_000_000
ARGS = st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=6).map("my_{}".format), JSON, max_size=2)


def us(ns):
    return ns / 1000


@st.composite
def spans(draw, names, start, end, depth=0):
    """Spans one after the other, with shorter ones inside."""
    rows, outer = [], (start, end)
    while start < end and draw(st.booleans()):
        begin = draw(st.integers(start, end))
        finish = draw(st.integers(begin, end))
        if depth and (begin, finish) == outer:
            break
        about = {"args": draw(ARGS)}
        kind = draw(st.sampled_from(["cpu_op", "cpu_op", "user_annotation"]))
        if kind == "cpu_op" and draw(st.booleans()):
            inputs = draw(INPUTS)
            about["args"] |= {"Input type": [each[0] for each in inputs], "Input Dims": [each[1] for each in inputs],
                              "Concrete Inputs": [each[2] for each in inputs]}  # fmt: skip
        rows.append({"ph": "X", "cat": kind, "name": draw(names), "ts": us(begin), "dur": us(finish - begin), **about})
        if depth < 4:
            rows += draw(spans(names, begin, finish, depth + 1))
        start = finish + 1
    return rows


@st.composite
def traces(draw, names=NAMES):
    """Two threads, and kernels, copies and collectives that a call inside an operator of the first one launched."""
    rows, number = [], 0
    for thread in (1, 2):
        rows += [{**row, "pid": 5, "tid": thread} for row in draw(spans(names, 0, 1_000_000))]
    operators = [row for row in rows if row["tid"] == 1 and row["cat"] == "cpu_op" and row["dur"] > 1]
    at = {7: 1_000_000, 8: 1_000_000}
    for operator in draw(st.lists(st.sampled_from(operators), max_size=4)) if operators else []:
        number += 1
        stream, duration = draw(st.sampled_from([7, 8])), draw(st.integers(1, 90_000))
        kind = draw(st.sampled_from(["kernel", "gpu_memcpy", "collective"]))
        about = {"correlation": number, "device": 1, "stream": stream, **draw(ARGS)}
        name = {
            "kernel": draw(names),
            "gpu_memcpy": "Memcpy DtoH (Device -> Pinned)",
            "collective": "ncclDevKernel_AllReduce",
        }[kind]
        if kind == "collective":
            about |= {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float",
                      "Group size": 4, "Process Group Name": draw(names)}  # fmt: skip
        elif kind == "gpu_memcpy":
            about["bytes"] = draw(st.integers(0, 2**40))
        rows.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 1, "ts": operator["ts"], "dur": 0,
                     "args": {"correlation": number}})  # fmt: skip
        rows.append({"ph": "X", "cat": "gpu_memcpy" if kind == "gpu_memcpy" else "kernel", "name": name, "pid": 1, "tid": stream,
                     "ts": us(at[stream]), "dur": us(duration), "args": about})  # fmt: skip
        at[stream] += duration + draw(st.integers(0, 5000))
    for i in range(draw(st.integers(0, 5))):
        about = {"Device Type": draw(st.sampled_from([0, 1])), "Device Id": draw(st.integers(-1, 3)), "Bytes": draw(st.integers(-(2**40), 2**40)),
                 "Addr": draw(st.integers(0, 2**62)), "Total Allocated": draw(st.integers(0, 2**40)), "Total Reserved": draw(st.integers(0, 2**40))}  # fmt: skip
        rows.append(
            {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": 5,
                "tid": 1,
                "ts": us(1000 * i),
                "args": about,
            }
        )
        series = draw(st.dictionaries(NAMES, st.floats(-1e9, 1e9), min_size=1, max_size=2))
        rows.append({"ph": "C", "name": draw(names), "pid": 5, "ts": us(1000 * i), "args": series})
    return {"baseTimeNanoseconds": BASE_NS, "traceEvents": rows}


PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def written(opstrobe, folder, trace, *names):
    """Writes the trace as t.json, and converts each file to the next one."""
    (folder / "t.json").write_text(json.dumps(trace))
    files = ["t.json", *names]
    for source, target in zip(files, names):
        process = opstrobe("convert", source, target, cwd=folder)
        assert process.returncode == 0, process.stderr
    return folder / files[-1]


def columns(path, table, left_out=()):
    rows = package.read(path).to_arrow(table).to_pylist()
    return [
        {key: value for key, value in row.items() if key not in left_out}
        for row in rows
        if row.get("category") != "Trace"  # the span of the session
    ]


@PROPERTY
@given(trace=traces())
def test_json(opstrobe, tmp_path, trace):
    first = written(opstrobe, tmp_path, trace, "a.json")
    again = written(opstrobe, tmp_path, trace, "a.json", "b.json.gz")
    for table in ("events", "kernels", "steps", "memory", "counters", "flows", "collectives", "processes", "tracks"):
        assert columns(first, table) == columns(again, table)
    for table in ("memory", "counters"):
        assert columns(first, table) == columns(tmp_path / "t.json", table)
    assert columns(first, "events", ["external_id", "args"]) == columns(
        tmp_path / "t.json", "events", ["external_id", "args"]
    )


@PROPERTY
@given(trace=traces())
def test_perfetto(opstrobe, tmp_path, trace):
    there = written(opstrobe, tmp_path, trace, "a.json", "there.pftrace")
    order = lambda row: json.dumps([row["pid"], row["tid"], row["start_ns"], -row["dur_ns"], row["name"], str(row)])  # noqa: E731
    left_out = ["id", "parent_id", "external_id", "args"]
    before, after = (sorted(columns(path, "events", left_out), key=order) for path in (tmp_path / "a.json", there))
    assert before == after
    files = tmp_path / "a.json", there
    kernels = [
        sorted(columns(path, "kernels", ["id", "launch_id", "operator_id"]), key=order_of_kernel) for path in files
    ]
    assert kernels[0] == kernels[1]
    # Perfetto's counters have a name each: that of the counter, and of its series.
    counters = [
        sorted((row["time_ns"], " ".join(filter(None, (row["name"], row["series"]))), row["value"]) for row in columns(path, "counters"))
        for path in files
    ]  # fmt: skip
    assert counters[0] == counters[1]


def order_of_kernel(row):
    return row["stream"], row["start_ns"]


def micro(ns):
    return ns // 1000 * 1000


@PROPERTY
@given(trace=traces())
@example(trace={"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "\0", "ts": 1.6, "dur": 0, "pid": 5, "tid": 2}]})
def test_chakra(opstrobe, tmp_path, trace):
    assume(any(row["ph"] == "X" for row in trace["traceEvents"]))  # a file without nodes is not identified as Chakra's
    there = written(opstrobe, tmp_path, trace, "a.json", "there.et")
    ours, theirs = package.read(tmp_path / "a.json"), package.read(there)
    kept = {"cpu_op", "user_annotation", "kernel", "gpu_memcpy"}
    events = {row["id"]: row for row in ours.to_arrow("events").to_pylist()}

    def parent(row):
        while row["parent_id"] is not None:
            row = events[row["parent_id"]]
            if row["category"] in ("cpu_op", "user_annotation"):
                return row["id"] + 1
        return None

    launched = {row["id"]: row["operator_id"] for row in ours.to_arrow("kernels").to_pylist()}
    before = {
        row["id"] + 1: {
            "what": (row["name"], row["category"], row["tid"], row["input_shapes"], row["input_types"], row["sequence_nr"]),
            "times": (micro(row["start_ns"]), micro(row["start_ns"] + row["dur_ns"])),
            "parent": launched[row["id"]] + 1 if row["on_device"] else parent(row),
            "pid": row["pid"] if row["on_device"] else None,
        }
        for row in events.values()
        if row["category"] in kept
    }  # fmt: skip
    after = {}
    for row in theirs.to_arrow("events").to_pylist():
        args = json.loads(row["args"])
        after[args["node_id"]] = {
            "what": (row["name"], row["category"], row["tid"], row["input_shapes"], row["input_types"], row["sequence_nr"]),
            "times": (row["start_ns"], row["start_ns"] + row["dur_ns"]),
            "parent": (args.get("ctrl_deps") or [None])[0],
            "pid": row["pid"] if row["on_device"] else None,
        }  # fmt: skip
    assert after == before
    values = [[row["args"]["Concrete Inputs"] for row in json.loads(path.read_text())["traceEvents"]
               if row["ph"] == "X" and row.get("args", {}).get("Concrete Inputs")]
              for path in (tmp_path / "a.json", written(opstrobe, tmp_path, trace, "a.json", "there.et", "back.json"))]  # fmt: skip
    assert sorted(values[0]) == sorted(values[1])  # what begins at one moment has no order
    operations = [
        [(row["name"], row["process_group"], row["group_size"], row["on_device"]) for row in read.to_arrow("collectives").to_pylist()]
        for read in (ours, theirs)
    ]  # fmt: skip
    assert Counter(operations[0]) == Counter(operations[1])


def stacks(path):
    return {stack: int(ns) for stack, ns in (line.rsplit(" ", 1) for line in path.read_text().splitlines())}


@PROPERTY
@given(trace=traces(PLAIN))
def test_stacks(opstrobe, tmp_path, trace):
    """speedscope and pprof keep the names; folded stacks keep what they have themselves."""
    wanted = stacks(written(opstrobe, tmp_path, trace, "wanted.folded"))
    for ending in (".speedscope.json", ".pb", ".pb.gz", ".folded"):
        if wanted:
            assert stacks(written(opstrobe, tmp_path, trace, "there" + ending, "back.folded")) == wanted, ending
