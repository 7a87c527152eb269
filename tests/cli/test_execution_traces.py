# SPDX-License-Identifier: Apache-2.0
"""Execution traces as traces: JSON of torch's ExecutionTraceObserver in both of its schemas, and Chakra's protocol buffers, by the fields of
et_def.proto. The files are made here."""

from __future__ import annotations

import json
import random

import pytest
from protobuf import message, varint

# id, parent, name, thread, scope; ids count the calls in the order in which they begin, nodes come in that in which they end.
CALLS = [
    (4, 3, "step", 1, 7),
    (5, 4, "aten::linear", 1, 0),
    (6, 5, "aten::t", 1, 0),
    (8, 5, "aten::addmm", 1, 0),
    (9, 2, "AddmmBackward0", 2, 0),
    (10, 4, 'relu "x"', 1, 0),
]
INPUTS = {
    "values": [[5, 6, 0, 20, 4, "cpu"], [1, 2], True, "<None>", 1.5, [[5, 6, 0, 20, 4, "cpu"]]],
    "shapes": [[4, 5], [[], []], [], [], [], [[4, 5]]],
    "types": ["Tensor(float)", "GenericList[Int,Int]", "Bool", "None", "Double", "GenericList[Tensor(float)]"],
    "strides": [[5, 1], [[], []], [], [], [], [[5, 1]]],
}
WANTED = {
    "Input Dims": [[4, 5], [], [], [], [], [[4, 5]]],
    "Input type": ["float", "ScalarList", "Scalar", "", "Scalar", "TensorList"],
    "Concrete Inputs": ["", "[1, 2]", "True", "", "1.5", ""],
}


def make_json(**changes):
    nodes = [
        {"id": number, "name": f"[pytorch|profiler|execution_trace|{what}]"}
        for number, what in [(1, "process"), (3, "thread")]
    ]
    for number, parent, name, thread, scope in reversed(CALLS):
        attributes = {
            "rf_id": number + 100,
            "seq_id": 7 if name == "aten::addmm" else -1,
            "scope": scope,
            "tid": thread,
            "op_schema": "",
        }
        attrs = [{"name": key, "type": "uint64", "value": value} for key, value in attributes.items()]
        inputs = INPUTS if name == "aten::linear" else {}
        nodes.append({"id": number, "name": name, "ctrl_deps": parent, "inputs": inputs, "outputs": {}, "attrs": attrs})
    return json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 77, "start_ts": 5, "nodes": nodes, **changes})  # fmt: skip


def make_old_json():
    """Schema 1.0: no lists of attributes."""
    nodes = []
    for number, parent, name, thread, scope in CALLS:
        inputs = INPUTS if name == "aten::linear" else {"values": [], "shapes": [], "types": []}
        node = {"id": number, "name": name, "parent": parent, "rf_id": number + 100, "scope": scope, "tid": thread}
        node |= {
            "seq_id": -1,
            "inputs": inputs["values"],
            "input_shapes": inputs["shapes"],
            "input_types": inputs["types"],
        }
        nodes.append(node)
    return json.dumps({"schema": "1.0.1", "pid": 77, "nodes": nodes})  # fmt: skip


COMPUTE, COLLECTIVE, LOAD = 4, 7, 2


def attribute(name, value):
    number = {bool: 27, int: 9, float: 3, str: 29}[type(value)]
    return 10, message((1, name), (number, int(value) if isinstance(value, bool) else value))


def node(number, name, kind, deps=(), data=(), start=0, duration=0, inputs=None, **attributes):
    fields = [(1, number), (2, name), (3, kind), *((4, each) for each in deps)]
    if data:
        fields.append((5, b"".join(map(varint, data))))  # packed, as proto3 writes them
    fields += [(6, start), (7, duration)]
    if inputs:
        fields.append(
            (8, message(*((place, inputs[key]) for place, key in enumerate(("values", "shapes", "types"), 1))))
        )
    return message(*fields, *(attribute(key, value) for key, value in attributes.items()))


def make_chakra(times=True, nodes=None):
    printed = {key: str(value) for key, value in INPUTS.items() if key != "strides"}
    printed["values"] = "['?', [1, 2], '', '', 1.5, '?']"
    nodes = nodes or [
        node(1, "step", COMPUTE, start=100 * times, duration=90, is_cpu_op=True, tid=5, scope=7),
        node(
            2, "aten::mm", COMPUTE, [1], start=110 * times, duration=20, inputs=printed, is_cpu_op=True, tid=5, rf_id=9
        ),
        node(3, "gemm", COMPUTE, [2], start=125 * times, duration=30, is_cpu_op=False, stream=7),
        node(
            4, "ncclKernel", COLLECTIVE, [2], [3], 160 * times, 25, stream=8, comm_type=2, comm_size=4096, pg_name="0"
        ),
        node(5, "load", LOAD, [], [3, 4], 190 * times, 5, tensor_size=64, weight=1.5),
    ]
    messages = [message((1, "0.0.4")), *nodes]
    return b"".join(varint(len(each)) + each for each in messages)


def convert(opstrobe, folder, name, data):
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    process = opstrobe("convert", name, "out.json", cwd=folder)
    assert process.returncode == 0, process.stderr
    trace = json.loads((folder / "out.json").read_text())
    rows = [row for row in trace["traceEvents"] if row["ph"] == "X" and row["cat"] != "Trace"]
    base = trace.get("baseTimeNanoseconds", 0)
    return {row["name"]: {**row, "at": round(row["ts"] * 1000) + base, "ns": round(row["dur"] * 1000)} for row in rows}


def diagnostics(opstrobe, folder, name):
    shown = json.loads(opstrobe("info", "--format", "json", name, cwd=folder).stdout)
    return {each["kind"]: each["count"] for each in shown.get("diagnostics", [])}


@pytest.mark.parametrize("make", [make_json, make_old_json])
def test_the_order_of_calls_stands_for_times(opstrobe, tmp_path, make):
    rows = convert(opstrobe, tmp_path, "et.json", make())
    assert {name: (row["at"], row["ns"], row["tid"]) for name, row in rows.items()} == {
        "step": (0, 6, 1),
        "aten::linear": (1, 3, 1),
        "aten::t": (2, 1, 1),
        "aten::addmm": (3, 1, 1),
        "AddmmBackward0": (4, 1, 2),
        'relu "x"': (5, 1, 1),
    }
    assert {row["pid"] for row in rows.values()} == {77}
    assert rows["step"]["cat"] == "user_annotation" and rows["aten::t"]["cat"] == "cpu_op"
    linear = rows["aten::linear"]["args"]
    assert {key: linear[key] for key in WANTED} == WANTED and linear["Record function id"] == 105
    assert diagnostics(opstrobe, tmp_path, "et.json") == {"no_times": len(CALLS)}
    assert opstrobe("validate", "et.json", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    "command", [[], ["views"], ["advise"], ["lines"], ["kernels"], ["roofline"], ["whatif"], ["diff", "et.json"]]
)
def test_commands_that_need_times_refuse(opstrobe, tmp_path, command):
    (tmp_path / "et.json").write_text(make_json())
    process = opstrobe(*command, "et.json", cwd=tmp_path)
    assert process.returncode == 1 and "'et.json' is an execution trace, which has no times" in process.stderr
    assert not process.stdout
    table = opstrobe("table", "--group-by-input-shape", "--format", "json", "et.json", cwd=tmp_path)
    assert table.returncode == 0 and "aten::addmm" in table.stdout


def test_an_execution_trace_is_not_one_of_the_traces_of_a_folder(opstrobe, tmp_path):
    rows = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
    (tmp_path / "et.json").write_text(make_json())
    shown = opstrobe("info", "--format", "json", ".", cwd=tmp_path)
    assert shown.returncode == 0 and "et.json" not in shown.stdout and "trace.json" in shown.stdout


def test_chakra_with_times(opstrobe, tmp_path):
    rows = convert(opstrobe, tmp_path, "rank0.et", make_chakra())
    assert {name: (row["at"], row["ns"], row["cat"]) for name, row in rows.items()} == {
        "step": (100_000, 90_000, "user_annotation"),
        "aten::mm": (110_000, 20_000, "cpu_op"),
        "gemm": (125_000, 30_000, "kernel"),
        "ncclKernel": (160_000, 25_000, "kernel"),
        "load": (190_000, 5_000, "gpu_memcpy"),
    }
    assert rows["aten::mm"]["tid"] == 5 and rows["gemm"]["tid"] == 7
    operator, collective, load = (rows[name]["args"] for name in ("aten::mm", "ncclKernel", "load"))
    assert operator["Input Dims"] == WANTED["Input Dims"] and operator["Input type"] == WANTED["Input type"]
    assert operator["Record function id"] == 9 and operator["ctrl_deps"] == [1]
    assert (collective["Collective name"], collective["comm_size"]) == ("allgather", 4096)
    assert collective["data_deps"] == [3] and load["data_deps"] == [3, 4] and load["tensor_size"] == 64
    assert diagnostics(opstrobe, tmp_path, "rank0.et") == {}
    arrows = [row for row in json.loads((tmp_path / "out.json").read_text())["traceEvents"] if row["ph"] in "sf"]
    assert [(row["ph"], row["tid"], row["cat"]) for row in arrows] == [
        ("s", 5, "ac2g"),
        ("f", 7, "ac2g"),
        ("s", 5, "ac2g"),
        ("f", 8, "ac2g"),
    ]


def test_chakra_without_times(opstrobe, tmp_path):
    rows = convert(opstrobe, tmp_path, "rank0.et", make_chakra(times=False))
    assert {name: (row["at"], row["ns"]) for name, row in rows.items()} == {
        "step": (0, 4),
        "aten::mm": (1, 3),
        "gemm": (2, 1),
        "ncclKernel": (3, 1),
        "load": (4, 1),
    }
    assert diagnostics(opstrobe, tmp_path, "rank0.et") == {"no_times": 5}


def test_nodes_that_make_no_sense(opstrobe, tmp_path):
    """Cycles, ids that are there twice, types and numbers that do not exist."""
    text = json.loads(make_json())
    text["nodes"] += [
        {"id": 20, "name": "a", "ctrl_deps": 21},
        {"id": 21, "name": "b", "ctrl_deps": 20},
        {"id": 21, "name": "c", "ctrl_deps": -3},
    ]
    text["nodes"] += [
        {"id": 22, "name": "d", "ctrl_deps": "x", "inputs": 5, "attrs": {"a": 1}},
        {"id": 23, "name": "e", "attrs": [7, {"name": 1}]},
    ]
    text["nodes"].append(
        {
            "id": 24,
            "name": "f",
            "ctrl_deps": 24,
            "inputs": {"types": ["Tensor(", "GenericList["], "shapes": [[1]], "values": 3},
        }
    )
    rows = convert(opstrobe, tmp_path, "et.json", json.dumps(text))
    assert {"a", "b", "c", "d", "e", "f"} <= set(rows) and all(rows[name]["ns"] == 1 for name in "cdef")
    first = node(1, "ok", COMPUTE, start=5, duration=1, is_cpu_op=True)
    bad = [
        node(2, "late", COMPUTE, start=1 << 63),
        first + b"\xff",
        message((1, 3), (2, "unknown type"), (3, 99), (4, b"\xff")),
    ]
    data = make_chakra(nodes=[first, *bad])
    assert set(convert(opstrobe, tmp_path, "x.et", data)) == {"ok", "unknown type"}
    assert diagnostics(opstrobe, tmp_path, "x.et") == {"not_an_event": 2}
    convert(opstrobe, tmp_path, "y.et", data[:-3])
    assert diagnostics(opstrobe, tmp_path, "y.et")["truncated"] == 1  # fmt: skip


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (make_json()[:-20], "an execution trace: invalid JSON"),
        ('{"schema": "1", "nodes": {"ctrl_deps": 1}}', "the file has no list 'nodes'"),
        ('{"schema": "1", "nodes": [1, {"ctrl_deps": 1}]}', "an entry of 'nodes' is not an object"),
        ('{"schema": "1", "nodes": [{"id": 1, "ctrl_deps": 1}]}', "a node without 'id' or 'name'"),
    ],
)
def test_files_that_cannot_be_read(opstrobe, tmp_path, content, error):
    (tmp_path / "bad.json").write_text(content)
    process = opstrobe("info", "bad.json", cwd=tmp_path)
    assert process.returncode == 1 and error in process.stderr, process.stderr


def test_changed_files(opstrobe, tmp_path):
    seed = random.Random(3)
    for data in (make_json().encode(), make_chakra()):
        for _ in range(12):
            changed = bytearray(data)
            changed[seed.randrange(len(data))] = seed.randrange(256)
            (tmp_path / "changed").write_bytes(changed)
            process = opstrobe("info", "changed", cwd=tmp_path)
            assert process.returncode in (0, 1) and (process.returncode == 0 or process.stderr.startswith("opstrobe: "))
