# SPDX-License-Identifier: Apache-2.0
"""Events and tables of traces with work on devices, compared with those that torch makes of the same events."""

import json
import warnings

import pytest

import opstrobe

PID, DEVICE, STREAM = 40, 0, 7
BANDWIDTH = 0.068  # GB/s


def row(category, name, tid, start, duration, pid=PID, **args):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def arrow(end, number, tid, start, pid=PID):
    also = {"bp": "e"} if end == "f" else {}
    return {"ph": end, "id": number, "cat": "ac2g", "name": "ac2g", "pid": pid, "tid": tid, "ts": start, **also}


def program():
    """A range around aten::linear around aten::addmm, which launches two kernels; a copy of the range's own."""
    details = {"registers per thread": 32, "grid": [4, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 25}
    speed = {"memory bandwidth (GB/s)": BANDWIDTH}
    rows = [
        row("user_annotation", "step", 1, 0, 900, **{"External id": 1}),
        row("cpu_op", "aten::linear", 1, 10, 500, **{"External id": 2}),
        row("cpu_op", "aten::addmm", 1, 20, 400, **{"External id": 3}),
        row("cuda_runtime", "cudaLaunchKernel", 1, 30, 20, correlation=100, **{"External id": 3}),
        row("cuda_runtime", "cudaLaunchKernel", 1, 60, 20, correlation=101, **{"External id": 3}),
        row("cpu_op", "aten::relu", 1, 600, 100, **{"External id": 4}),
        row("cuda_runtime", "cudaLaunchKernel", 1, 610, 20, correlation=102, **{"External id": 4}),
        row("cuda_runtime", "cudaMemcpyAsync", 1, 800, 50, correlation=103, **{"External id": 0}),
        row("kernel", "gemm", STREAM, 1000, 1500, DEVICE, correlation=100, **{"External id": 3}, **details),
        row("kernel", "gemm", STREAM, 2500, 250, DEVICE, correlation=101, **{"External id": 3}, **details),
        row("kernel", "relu", STREAM, 2750, 125, DEVICE, correlation=102, **{"External id": 4}, **details),
        row("gpu_memcpy", "Memcpy DtoH", STREAM, 3000, 60, DEVICE, correlation=103, bytes=4096, **speed),
        row("gpu_user_annotation", "step", STREAM, 999, 2062, DEVICE, **{"External id": 1}),
    ]
    launches = [(30, 1000), (60, 2500), (610, 2750), (800, 3000)]
    for number, (call, work) in enumerate(launches, 1):
        rows += [arrow("s", number, 1, call), arrow("f", number, STREAM, work, DEVICE)]
    return rows


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    path = tmp_path_factory.mktemp("device") / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": program()}))
    return opstrobe.read(path)


def of_torch():
    """The list that torch's profiler makes of this program: work hangs on the operator that its External id names."""
    from torch.autograd import DeviceType
    from torch.autograd.profiler_util import EventList, FunctionEvent

    events, by_id = [], {}
    for number, entry in enumerate(entry for entry in program() if entry["ph"] == "X"):
        on_device = entry["pid"] == DEVICE
        linked = 0 if entry["cat"] in ("cpu_op", "user_annotation") else entry["args"].get("External id", 0)
        event = FunctionEvent(
            id=entry["args"]["External id"] if not linked and not on_device else 1000 + number,
            name=entry["name"],
            thread=0 if on_device else 1,
            start_us=entry["ts"],
            end_us=entry["ts"] + entry["dur"],
            use_device="cuda",
            device_type=DeviceType.CUDA if on_device else DeviceType.CPU,
            device_index=entry["pid"] if on_device else -1,
            device_resource_id=entry["tid"],
            is_user_annotation=entry["cat"].endswith("user_annotation"),
            stack=[],
            flops=0,
        )
        if entry["cat"] == "cpu_op":
            by_id[event.id] = event
        elif on_device and not event.is_user_annotation and linked in by_id:
            by_id[linked].append_kernel(event.name, event.device_index, event.time_range.elapsed_us())
        events.append(event)
    events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    made = EventList(events, use_device="cuda", with_flops=True)
    made._build_tree()
    return made


SORTS = [
    None,
    "cuda_time_total",
    "self_cuda_time_total",
    "self_device_time_total",
    "device_time",
    "cpu_time_total",
    "count",
]


@pytest.mark.torch_like("2.13")
@pytest.mark.parametrize("sort_by", SORTS)
def test_table_of_averages_equals_torch(read, sort_by):
    ours, theirs = read.key_averages(), of_torch().key_averages()
    assert ours.table(sort_by=sort_by) == theirs.table(sort_by=sort_by)
    assert "Self CUDA %" in ours.table() and "Self CUDA time total: 1.935ms" in ours.table()


@pytest.mark.torch_like("2.13")
@pytest.mark.parametrize("top_level", [False, True])
def test_table_of_events_equals_torch(read, top_level):
    how = {"top_level_events_only": top_level, "row_limit": -1}
    assert read.events().table(**how) == of_torch().table(**how)


NAMES = ["name", "device_time", "device_time_total", "self_device_time_total", "cpu_time_total", "self_cpu_time_total"]
NAMES += ["device_type", "is_user_annotation", "device_time_str", "self_device_time_total_str", "kernels", "use_device"]


@pytest.mark.torch_like("2.13")
def test_times_and_kernels_equal_torch(read):
    ours, theirs = read.events(), of_torch()
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        for name in NAMES:
            assert getattr(mine, name) == getattr(other, name), (mine.name, name)
        assert [child.name for child in mine.cpu_children] == [child.name for child in other.cpu_children]
        assert (mine.cpu_parent and mine.cpu_parent.name) == (other.cpu_parent and other.cpu_parent.name)


def test_work_names_its_operator_and_device(read):
    by_name = {event.name: event for event in read.events()}
    gemm, addmm = by_name["gemm"], by_name["aten::addmm"]
    assert (gemm.linked_correlation_id, addmm.linked_correlation_id) == (addmm.id, 0)
    assert (gemm.device_index, gemm.device_resource_id) == (DEVICE, STREAM)
    assert addmm.device_index == -1
    assert len({event.id for event in read.events()}) == len(read.events())
    assert [type(kernel) for kernel in addmm.kernels] == [opstrobe.Kernel] * 2
    assert by_name["step"].kernels == [] and by_name["cudaLaunchKernel"].kernels == []


def test_details_of_kernels(read):
    by_name = {event.name: event for event in read.events()}
    details = by_name["gemm"].event_metadata
    assert (details.registers_per_thread, details.grid, details.est_occupancy_pct) == (32, [4, 1, 1], 25)
    assert (details.stream, details.bytes, details.collective_name) == (STREAM, None, None)
    copy = by_name["Memcpy DtoH"].event_metadata
    assert (copy.bytes, copy.bandwidth_gb_s) == (4096, BANDWIDTH)
    assert by_name["aten::addmm"].event_metadata is None
    metadata = by_name["relu"].metadata
    assert (metadata["correlation"], metadata["device"], metadata["block"]) == (102, DEVICE, [128, 1, 1])
    with pytest.warns(FutureWarning, match="metadata_json"):
        assert json.loads("{" + by_name["relu"].metadata_json + "}") == metadata


def test_deprecated_names_of_device_figures(read):
    (addmm,) = (average for average in read.key_averages() if average.key == "aten::addmm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert (addmm.cuda_time, addmm.cuda_time_total, addmm.self_cuda_time_total) == (1750, 1750, 1750)


def test_export_stacks_by_time_on_the_device(read, tmp_path):
    path = tmp_path / "stacks.txt"
    read.export_stacks(path, "self_cuda_time_total")
    assert path.read_text() == ("step;aten::linear;aten::addmm 1750000\nstep;aten::relu 125000\n")


def test_a_trace_without_devices_has_no_columns_for_them(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [entry for entry in program() if entry["pid"] == PID][:3]}))
    read = opstrobe.read(path)
    assert read.trace.device is None
    assert "CUDA" not in read.key_averages().table()
    assert [event.kernels for event in read.events()] == [[]] * 3
