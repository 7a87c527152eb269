# SPDX-License-Identifier: Apache-2.0
"""A trace that has everything, and what of it is compared after a round trip: the rows of the table in docs/manual/traces.md."""

from __future__ import annotations

import json
from collections import Counter

BASE_NS = 1_790_000_000_000_000_000


def _span(cat, name, ts, dur, tid=1, pid=5, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def _python(name, ts, dur, number, parent, **args):
    return _span("python_function", name, ts, dur, **{"Python id": number, "Python parent id": parent, **args})


def _inputs(sizes, strides, types, values):
    return {"Input Dims": sizes, "Input Strides": strides, "Input type": types, "Concrete Inputs": values}


def _memory(ts, size, address, total):
    about = {
        "Device Type": 0,
        "Device Id": -1,
        "Bytes": size,
        "Addr": address,
        "Total Allocated": total,
        "Total Reserved": 0,
    }
    return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 5, "tid": 1, "ts": ts, "args": about}  # fmt: skip


def _step(i):
    at, number = 1000.25 * i, 10 * i
    mm = _inputs([[4, 8], [8, 2]], [[8, 1], [2, 1]], ["float", "float"], ["", ""])
    add = _inputs([[4, 2], []], [[2, 1], []], ["float", "Scalar"], ["", "1.5"])
    collective = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float", "Group size": 4,
                  "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3]"}  # fmt: skip
    return [
        _span("user_annotation", f"ProfilerStep#{i}", at, 1000),
        _python("train.py(7): train_step", at + 10, 800, number + 1, None),
        _python("nn.Module: Linear_0", at + 20, 300, number + 2, number + 1, **{"Python module id": 0}),
        _span("cpu_op", "aten::linear", at + 30, 200.125, **{"External id": number + 3, "Sequence number": i, "Fwd thread id": 0, **mm}),
        _span("cpu_op", "aten::mm", at + 40, 100.5, **{"External id": number + 4, **mm}),
        _span("cuda_runtime", "cudaLaunchKernel", at + 50, 5, correlation=number + 5),
        _span("kernel", "gemm", at + 100, 50.375, tid=7, pid=1, correlation=number + 5, device=1, stream=7, grid=[4, 1, 1], block=[128, 1, 1],
              **{"External id": number + 4}),
        _span("cpu_op", "aten::add", at + 400, 50, **{"External id": number + 6, **add}),
        _span("cuda_runtime", "cudaMemcpyAsync", at + 410, 5, correlation=number + 7),
        _span("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", at + 500, 20, tid=7, pid=1, correlation=number + 7, device=1, stream=7, bytes=4096,
              **{"External id": number + 6}),
        _span("user_annotation", "nccl:all_reduce", at + 550, 30, **{"External id": number + 8, **collective}),
        _span("cuda_runtime", "cudaLaunchKernelExC", at + 555, 5, correlation=number + 9),
        _span("kernel", "ncclDevKernel_AllReduce", at + 600, 80, tid=8, pid=1, correlation=number + 9, device=1, stream=8,
              **{"External id": number + 8, **collective}),
        {"ph": "s", "id": i + 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 5, "tid": 1, "ts": at + 30},
        {"ph": "f", "id": i + 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 5, "tid": 2, "ts": at + 700, "bp": "e"},
        _span("cpu_op", "MmBackward0", at + 700, 90.25, tid=2, **{"External id": number + 10, "Sequence number": i, "Fwd thread id": 1}),
        _memory(at + 45, 64, 4096 + i, 64), _memory(at + 460, -64, 4096 + i, 0),
        {"ph": "C", "name": "power", "pid": 1, "ts": at, "args": {"watts": 100.5 + i}},
    ]  # fmt: skip


def trace():
    names = [
        {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": about}
        for kind, pid, tid, about in (
            ("process_name", 5, 0, {"name": "python"}),
            ("process_labels", 5, 0, {"labels": "CPU"}),
            ("process_labels", 1, 0, {"labels": "GPU 1"}),
            ("thread_name", 5, 1, {"name": "main"}),
            ("thread_name", 5, 2, {"name": "autograd"}),
        )
    ]
    rows = [row for i in range(1, 4) for row in _step(i)]
    about = {"rank": 2, "world_size": 4, "backend": "nccl"}
    return {
        "baseTimeNanoseconds": BASE_NS,
        "distributedInfo": about,
        "mine": {"a": [1, 2.5]},
        "traceEvents": names + rows,
    }


# --- what is compared -------------------------------------------------------------------------------------------------


def _rows(trace, table):
    return trace.to_arrow(table).to_pylist()


def _counted(values):
    return sorted(Counter(map(str, values)).items())


def _named(category):
    return lambda trace: _counted(row["name"] for row in _rows(trace, "events") if row["category"] in category)


def _of_events(*columns, kinds=("cpu_op",)):
    return lambda trace: _counted(
        [row["name"], *(row[column] for column in columns)]
        for row in _rows(trace, "events")
        if row["category"] in kinds
    )


def times(trace, unit_ns=1):
    """Starts and ends, rounded down to a unit."""
    return _counted(
        [row["name"], row["start_ns"] // unit_ns, (row["start_ns"] + row["dur_ns"]) // unit_ns]
        for row in _rows(trace, "events")
        if row["category"] in ("cpu_op", "kernel", "gpu_memcpy")
    )


def steps(trace, unit_ns=1):
    return _counted(
        [row["step"], row["start_ns"] // unit_ns, (row["start_ns"] + row["dur_ns"]) // unit_ns]
        for row in _rows(trace, "steps")
    )


def _parents(trace):
    """By operator, the operator or annotation around it."""
    events = {row["id"]: row for row in _rows(trace, "events")}

    def outer(row):
        while row["parent_id"] is not None:
            row = events[row["parent_id"]]
            if row["category"] in ("cpu_op", "user_annotation"):
                return row["name"]
        return None

    return _counted([row["name"], outer(row)] for row in events.values() if row["category"] == "cpu_op")


def _argument(name, kind):
    """Of the trace as JSON, since tables have no column for it."""
    rows = lambda trace: [row.get("args", {}) for row in trace.json if row.get("cat") == kind]  # noqa: E731
    return lambda trace: _counted(args[name] for args in rows(trace) if args.get(name))


def _columns(table, *columns):
    return lambda trace: _counted([row[column] for column in columns] for row in _rows(trace, table))


def _counters(trace):
    """Perfetto's counters have one name: that of the counter and of its series."""
    return sorted((row["time_ns"], f"{row['name']} {row['series'] or ''}".strip(), row["value"]) for row in _rows(trace, "counters"))  # fmt: skip


def _flows(trace):
    names = {row["id"]: row["name"] for row in _rows(trace, "events")}
    backward = [row for row in _rows(trace, "flows") if row["kind"] == "backward"]
    return _counted([names.get(row["from_id"]), names.get(row["to_id"])] for row in backward)


def _names(trace):
    named = [(table, row["name"]) for table in ("processes", "tracks") for row in _rows(trace, table) if row["name"]]
    return sorted(named)


def _metadata(trace):
    return json.loads(trace.metadata.get("mine", "null")), trace.rank


FIELDS = {
    "operators": _named(("cpu_op",)),
    "annotations": _named(("user_annotation",)),
    "work of devices": _named(("kernel", "gpu_memcpy")),
    "calls of the runtime": _named(("cuda_runtime",)),
    "Python functions": _named(("python_function",)),
    "start and end": times,
    "what is around an operator": _parents,
    "threads": _of_events("tid"),
    "processes": _of_events("pid"),
    "names of threads and processes": _names,
    "labels of processes": _columns("processes", "pid", "labels"),
    "shapes and types of inputs": _of_events("input_shapes", "input_types"),
    "values of inputs": _argument("Concrete Inputs", "cpu_op"),
    "strides of inputs": _argument("Input Strides", "cpu_op"),
    "sequence numbers": _of_events("sequence_nr"),
    "other arguments": _argument("grid", "kernel"),
    "device and stream": _columns("kernels", "name", "device", "stream"),
    "operator of device work": _columns("kernels", "name", "operator"),
    "launch of device work": _columns("kernels", "name", "delay_ns"),
    "collectives": _columns("collectives", "name", "process_group", "group_size", "message_bytes"),
    "flows from forward to backward": _flows,
    "steps": steps,
    "allocations": _columns("memory", "time_ns", "bytes", "address", "total_allocated"),
    "counters": _counters,
    "modules, by their Python functions": _columns("modules", "module", "class", "calls"),
    "metadata and rank": _metadata,
    "stacks and self times": lambda trace: trace.folded,
}

# Fields that may be kept in microseconds.
TIMES = {"start and end": times, "steps": steps}
