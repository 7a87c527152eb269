# SPDX-License-Identifier: Apache-2.0
"""JSON of rocprofv3: kernels, copies, calls and ranges of ROCTX of the processes in a file that is made here."""

from __future__ import annotations

import copy
import json
import random

import pytest

KINDS = [
    ("NONE", []),
    ("HIP_RUNTIME_API", ["hipLaunchKernel", "hipMemcpyAsync"]),
    ("MARKER_CORE_RANGE_API", ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"]),
    ("RCCL_API", ["ncclAllReduce"]),
]
CPU, FIRST_GPU, SECOND_GPU = 11, 22, 33
BASE = 1_000_000


def record(kind, operation, correlation, start, end, thread=4242, **members):
    return {
        "size": 64,
        "kind": kind,
        "operation": operation,
        "correlation_id": {"internal": correlation, "external": 0},
        "start_timestamp": BASE + start,
        "end_timestamp": BASE + end,
        "thread_id": thread,
        **members,
    }


def kernel(correlation, start, end, agent, number=7, **members):
    info = {
        "agent_id": {"handle": agent},
        "queue_id": {"handle": 3},
        "kernel_id": number,
        "group_segment_size": 512,
        "workgroup_size": {"x": 64, "y": 2, "z": 1},
        "grid_size": {"x": 1000, "y": 2, "z": 1},
    }
    return record(9, 0, correlation, start, end, dispatch_info=info, **members)


def make_process(pid=4000):
    copies = {"src_agent_id": {"handle": CPU}, "dst_agent_id": {"handle": SECOND_GPU}, "bytes": 4096}
    records = {
        "kernel_dispatch": [
            kernel(1, 2000, 2500, FIRST_GPU, stream_id={"handle": 0}),
            kernel(2, 2600, 2700, SECOND_GPU, 8),
        ],
        "hip_api": [record(1, 0, 1, 1000, 1100), record(1, 0, 2, 1200, 1300), record(1, 1, 3, 1400, 1500)],
        "marker_api": [
            record(2, 1, 10, 900, 3000),
            record(2, 1, 11, 950, 1600),
            record(2, 0, 12, 1700, 1700),
            record(2, 2, 13, 100, 5000),
        ],
        "rccl_api": [record(3, 0, 20, 1800, 1900)],
        "memory_copy": [record(8, 1, 3, 3000, 3200, **copies)],
        "memory_allocation": [{"of another": "kind"}],
    }
    return {
        "metadata": {"pid": pid},
        "agents": [
            {"id": {"handle": CPU}, "type": 1, "name": "cpu", "product_name": "A CPU"},
            {"id": {"handle": FIRST_GPU}, "type": 2, "name": "gfx942", "product_name": "A GPU", "cu_count": 304, "wave_front_size": 64},
            {"id": {"handle": SECOND_GPU}, "type": 2, "name": "gfx942", "product_name": ""},
        ],
        "buffer_records": records,
        "strings": {
            "buffer_records": [{"kind": kind, "operations": names} for kind, names in KINDS],
            "marker_api": [
                {"key": 10, "value": "step \u00fc"},
                {"key": 11, "value": "aten::mm, seq = 5, op_id = 9, sizes = [[2, 3], [3, 4]]"},
                {"key": 12, "value": "a mark"},
                {"key": 13, "value": "loading"},
            ],
        },
        "kernel_symbols": [
            {"kernel_id": 7, "kernel_name": "_Z4gemmv.kd", "formatted_kernel_name": "gemm()"},
            {"kernel_id": 8, "kernel_name": "copy_kernel.kd", "formatted_kernel_name": ""},
        ],
    }  # fmt: skip


def make_file(*processes):
    return {"rocprofiler-sdk-tool": list(processes or [make_process()])}


def convert(opstrobe, folder, content, name="run_results.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    process = opstrobe("convert", name, "out.json", cwd=folder)
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "out.json").read_text())


def rows_of(trace, *phases):
    base = trace["baseTimeNanoseconds"]
    rows = [row for row in trace["traceEvents"] if row["ph"] in phases]
    return sorted(
        (round(float(row["ts"]) * 1000) + base - BASE, round(row.get("dur", 0) * 1000), row["name"], row.get("cat"))
        for row in rows
    )


def test_records_of_a_process(opstrobe, tmp_path):
    trace = convert(opstrobe, tmp_path, make_file())
    assert rows_of(trace, "X") == [
        (900, 2100, "step \u00fc", "user_annotation"),
        (950, 650, "aten::mm", "cpu_op"),
        (1000, 100, "hipLaunchKernel", "cuda_runtime"),
        (1200, 100, "hipLaunchKernel", "cuda_runtime"),
        (1400, 100, "hipMemcpyAsync", "cuda_runtime"),
        (1800, 100, "ncclAllReduce", "rccl"),
        (2000, 500, "gemm()", "kernel"),
        (2600, 100, "copy_kernel", "kernel"),
        (3000, 200, "Memcpy HtoD", "gpu_memcpy"),
    ]
    marks = rows_of(trace, "i", "b", "e")
    assert [row[:3] for row in marks if row[2] in ("a mark", "loading")] == [
        (100, 0, "loading"),
        (1700, 0, "a mark"),
        (5000, 0, "loading"),
    ]
    rows = {row["name"]: row for row in trace["traceEvents"] if row["ph"] == "X"}
    assert rows["aten::mm"]["args"]["Input Dims"] == [[2, 3], [3, 4]]
    assert rows["aten::mm"]["args"]["Sequence number"] == 5
    gemm, other, copied = (rows[name]["args"] for name in ("gemm()", "copy_kernel", "Memcpy HtoD"))
    assert gemm["grid"] == [16, 1, 1] and gemm["block"] == [64, 2, 1] and gemm["shared memory"] == 512
    assert (gemm["device"], gemm["stream"]) == (0, 0) and (other["device"], other["stream"]) == (1, 3)
    assert copied["device"] == 1 and copied["bytes"] == 4096
    assert rows["hipMemcpyAsync"]["args"]["correlation"] == copied["correlation"]
    assert [(each["id"], each["name"], each.get("numSms")) for each in trace["deviceProperties"]] == [
        (0, "A GPU", 304),
        (1, "gfx942", None),
    ]
    shown = opstrobe("kernels", "--by-operator", "--format", "json", "run_results.json", cwd=tmp_path)
    assert {tuple(row[:2]) for row in json.loads(shown.stdout)["table"]["rows"]} == {
        ("gemm()", "aten::mm"),
        ("copy_kernel", "aten::mm"),
    }


def test_processes_of_a_file(opstrobe, tmp_path):
    """Correlations count in each process, and a process may be without a list around it."""
    trace = convert(opstrobe, tmp_path, make_file(make_process(), make_process(4001)))
    rows = [row for row in trace["traceEvents"] if row["ph"] == "X"]
    assert {row["pid"] for row in rows if row["cat"] == "cuda_runtime"} == {4000, 4001}
    launches = [row["args"]["correlation"] for row in rows if row["name"] == "hipMemcpyAsync"]
    assert len(set(launches)) == 2 and len(trace["deviceProperties"]) == 2
    alone = convert(opstrobe, tmp_path, {"rocprofiler-sdk-tool": make_process()})
    assert len(rows_of(alone, "X")) * 2 == len(rows)


def test_records_that_make_no_sense(opstrobe, tmp_path):
    process = make_process()
    calls = process["buffer_records"]["hip_api"]
    for members in (
        {"end_timestamp": 1},
        {"start_timestamp": -5},
        {"end_timestamp": 1 << 63},
        {"start_timestamp": "x"},
    ):
        calls.append({**calls[0], **members})
    calls += [7, None, {**calls[0], "kind": 99}, {**calls[0], "operation": -4}, {**calls[0], "correlation_id": []}]
    process["buffer_records"]["kernel_dispatch"].append(kernel(4, 1, 2, 77, 1234))
    process["kernel_symbols"].append({"kernel_id": "x", "formatted_kernel_name": 5})
    process["strings"]["marker_api"] += [3, {"key": 1}]
    process["agents"].append([])
    trace = convert(opstrobe, tmp_path, make_file(process))
    assert (1, 1, "(unknown kernel)", "kernel") in rows_of(trace, "X")
    shown = json.loads(opstrobe("info", "--format", "json", "run_results.json", cwd=tmp_path).stdout)
    assert {each["kind"]: each["count"] for each in shown["diagnostics"]} == {"not_an_event": 2, "bad_time": 4}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (json.dumps(make_file())[:-40], "JSON of rocprofv3: invalid JSON"),
        ('{"rocprofiler-sdk-tool": 5}', "the file has no list 'rocprofiler-sdk-tool'"),
        ('{"rocprofiler-sdk-tool": [5]}', "an entry of 'rocprofiler-sdk-tool' that is not an object"),
    ],
)
def test_files_that_cannot_be_read(opstrobe, tmp_path, content, error):
    (tmp_path / "bad.json").write_text(content)
    process = opstrobe("info", "bad.json", cwd=tmp_path)
    assert process.returncode == 1 and error in process.stderr, process.stderr


def test_changed_files(opstrobe, tmp_path):
    seed = random.Random(3)
    data = json.dumps(make_file()).encode()
    for _ in range(20):
        changed = bytearray(data)
        changed[seed.randrange(len(data))] = seed.randrange(256)
        (tmp_path / "changed").write_bytes(changed)
        process = opstrobe("info", "changed", cwd=tmp_path)
        assert process.returncode in (0, 1) and (process.returncode == 0 or process.stderr.startswith("opstrobe: "))
    empty = copy.deepcopy(make_file())
    empty["rocprofiler-sdk-tool"][0]["buffer_records"] = {}
    assert not [row for row in rows_of(convert(opstrobe, tmp_path, empty), "X") if row[3] != "Trace"]
