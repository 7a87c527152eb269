# SPDX-License-Identifier: Apache-2.0
"""Recording CUDA's devices from Python, without a GPU: with the fake libcupti and driver of tests/gpu/fake_cupti/.

The programs run in separate processes, because a process searches for the libraries once. Operators are torch's and
recorded as always; an operator of our own launches on the device that is none.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from decimal import Decimal

import pytest

import opstrobe
from opstrobe import ProfilerActivity, doctor

NANOSECOND = Decimal("0.001")  # in the microseconds of a trace, of which a float loses some after weeks of uptime
DRIFT_US = 0.05  # what the device's clock may gain or lose in such a time
SOURCE = pathlib.Path(__file__).resolve().parents[1] / "gpu" / "fake_cupti"
PRELUDE = """
import ctypes, json, os, sys, warnings
import torch
import opstrobe
from opstrobe import ProfilerActivity

CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA
device = ctypes.CDLL(os.environ["OPSTROBE_CUPTI"])
device.fake_cupti_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
device.fake_cupti_copy.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]
NAME = b"_Z4gemmPKfS0_Pf"

# torch.library.custom_op would import torch._dynamo at the first call: 1.2 s for each program.
library = torch.library.Library("toy", "DEF")
library.define("mm(Tensor a, Tensor b) -> Tensor")
library.define("to_device(Tensor a) -> Tensor")

def mm(a, b):
    device.fake_cupti_launch(NAME, 264, 256, 5000, 20000)
    return torch.zeros(a.shape[0], b.shape[1])

def to_device(a):
    device.fake_cupti_copy(a.numel() * 4, 1000, 3000)
    return a.clone()

library.impl("mm", mm, "CompositeExplicitAutograd")
library.impl("to_device", to_device, "CompositeExplicitAutograd")
mm, to_device = torch.ops.toy.mm, torch.ops.toy.to_device

def step():
    with opstrobe.record_function("step"):
        mm(to_device(torch.ones(4, 4)), torch.ones(4, 4))

step()
"""


def headers():
    spec = importlib.util.find_spec("nvidia")
    return next(pathlib.Path(root, "cu13", "include") for root in spec.submodule_search_locations)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder with both."""
    folder = tmp_path_factory.mktemp("fake_cupti")
    for sources, library in [
        (("fake_cupti.c", "fake_pm_sampling.c", "../replay/records.c"), "libfake-cupti.so"),
        (("fake_cupti.c", "../replay/records.c"), "libold-cupti.so"),  # as before 12.6: it samples no counters
        (("fake_cuda.c",), "libcuda.so.1"),
    ]:
        command = ["cc", "-shared", "-fPIC", "-pthread", "-D_GNU_SOURCE", "-fvisibility=hidden", "-isystem", headers()]
        subprocess.run([*command, *(SOURCE / source for source in sources), "-o", folder / library], check=True)
    return folder


def run(libraries, code, **environment):
    """What the program prints, as JSON; a warning is an error unless it catches it."""
    environment = {
        **os.environ,
        "OPSTROBE_CUPTI": str(libraries / "libfake-cupti.so"),
        "LD_LIBRARY_PATH": str(libraries),
        **environment,
    }
    process = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", PRELUDE + code],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_device_work_is_below_its_operator_and_annotation(libraries, tmp_path):
    path = tmp_path / "trace.json"
    found = run(
        libraries,
        f"""
with opstrobe.profile(activities=[CPU, CUDA]) as prof:
    for _ in range(3):
        step()
prof.export_chrome_trace({str(path)!r})
print(json.dumps([prof.use_device, prof.profiler.use_device]))
""",
    )
    assert found == ["cuda", "cuda"]
    trace = json.loads(path.read_text(), parse_float=Decimal)
    rows = trace["traceEvents"]
    by_category = {}
    for row in rows:
        by_category.setdefault(row.get("cat"), []).append(row)
    operators = {row["args"]["External id"]: row["name"] for row in by_category["cpu_op"]}
    kernels, copies = by_category["kernel"], by_category["gpu_memcpy"]
    assert [row["name"] for row in kernels] == ["gemm(float const*, float const*, float*)"] * 3
    assert {operators[row["args"]["External id"]] for row in kernels} == {"toy::mm"}
    assert {operators[row["args"]["External id"]] for row in copies} == {"toy::to_device"}
    assert len({row["args"]["External id"] for row in kernels}) == 3
    assert {row["pid"] for row in kernels} == {0} and {row["tid"] for row in kernels} == {7}
    calls = {row["args"]["correlation"]: row for row in by_category["cuda_runtime"]}
    for row in kernels + copies:
        call = calls[row["args"]["correlation"]]
        assert call["args"]["External id"] == row["args"]["External id"]
        assert call["ts"] + call["dur"] <= row["ts"]
    assert [row["args"]["bytes"] for row in copies] == [64] * 3
    over = by_category["gpu_user_annotation"]
    assert [row["name"] for row in over] == ["step"] * 3
    for row, kernel, copy in zip(over, kernels, copies):
        # as in Kineto: a nanosecond before the first, two ns longer than all
        assert row["ts"] == min(kernel["ts"], copy["ts"]) - NANOSECOND
        assert row["ts"] + row["dur"] == kernel["ts"] + kernel["dur"] + NANOSECOND
    assert len(by_category["ac2g"]) == 2 * 6
    assert trace["deviceProperties"][0]["name"] == "NVIDIA H100 80GB HBM3"
    assert {"GPU 0", "CPU"} == {row["args"]["labels"] for row in rows if row.get("name") == "process_labels"}


def test_filters_choose_what_is_recorded(libraries):
    found = run(
        libraries,
        """
def categories(cuda):
    with opstrobe.profile(activities=[CPU, cuda]) as prof:
        step()
    rows = [row[1] for row in prof.profiler.trace.rows()]
    device = {"kernel", "gpu_memcpy", "cuda_runtime", "gpu_user_annotation"}
    return sorted(set(rows) & device)

print(json.dumps([
    categories(CUDA),
    categories({CUDA: ["CONCURRENT_KERNEL"]}),
    categories({CUDA: ["GPU_MEMCPY", "CUDA_RUNTIME"]}),
    categories({CUDA: []}),
]))
""",
    )
    assert found[0] == ["cuda_runtime", "gpu_memcpy", "gpu_user_annotation", "kernel"]
    assert found[1] == ["kernel"]
    assert found[2] == ["cuda_runtime", "gpu_memcpy"]
    assert found[3] == []


# What each name of CUDA's kinds brings of the records of three files (training-13.5.txt, extras-13.5.txt and
# memory-13.5.txt of tests/gpu/replay list them): how many rows of which category, or counters of which name.
OF_KIND = {
    "CONCURRENT_KERNEL": {"kernel": 7},
    "GPU_MEMCPY": {"gpu_memcpy": 3},
    "GPU_MEMSET": {"gpu_memset": 1},
    "CUDA_RUNTIME": {"cuda_runtime": 19},
    "CUDA_DRIVER": {"cuda_driver": 2},
    "OVERHEAD": {"overhead": 1},
    "CUDA_SYNC": {"cuda_sync": 3, "cuda_event": 1},
    "NVTX": {"user_annotation": 3},
    "ENVIRONMENT": {
        "SM Clock (MHz)": 1, "Memory Clock (MHz)": 1, "Temperature (C)": 1, "Power (W)": 1, "Fan Speed (%)": 1,
    },
    "MEMORY": {
        "cuda_memory": 9, "Device Memory Held (B)": 5, "Device Static Memory Held (B)": 1, "Managed Memory Held (B)": 1,
        "Pinned Memory Held (B)": 2,
    },
    "MEMORY_POOL": {"Memory Pool Size (B)": 2, "Memory Pool Used (B)": 2},
    "GPU_USER_ANNOTATION": {},  # follows from kernels and the calls that started them
    "GRAPH_DEPENDENCY": {},  # arrows: test_dependencies_of_graphs_are_arrows_between_its_nodes
    "GRAPH_HOST_NODE": {},  # of these the files have none: test_nodes_of_graphs_that_are_no_work_have_rows_too
    "GRAPH_EVENT_NODE": {},
    "GRAPH_NODE": {},  # says of kernels what they were captured from: tests/gpu/test_cupti.c
    "PM_SAMPLING": {},  # makes no records: test_cuda_sampling.py
}  # fmt: skip
WHEN_NAMED = {
    "CUDA_SYNC",
    "GRAPH_DEPENDENCY",
    "GRAPH_HOST_NODE",
    "GRAPH_EVENT_NODE",
    "NVTX",
    "ENVIRONMENT",
    "MEMORY",
    "MEMORY_POOL",
    "PM_SAMPLING",
}


def test_each_kind_of_cuda_brings_its_own_rows_and_no_others(libraries, tmp_path):
    replay = SOURCE.parent / "replay"
    together = tmp_path / "together.cupti"
    head = 16
    files = [(replay / f"{name}-13.5.cupti").read_bytes() for name in ("training", "extras", "memory")]
    together.write_bytes(files[0] + files[1][head:] + files[2][head:])
    found = run(
        libraries,
        f"""
import collections, time
warnings.filterwarnings("ignore", "1 records could not be kept")  # the files have one that is none

def count(given):
    with opstrobe.profile(activities=[CPU, given]) as prof:
        time.sleep(0.005)  # the files' millisecond lies in here
    prof.export_chrome_trace({str(tmp_path / "trace.json")!r})
    with open({str(tmp_path / "trace.json")!r}) as file:
        rows = json.load(file)["traceEvents"]
    return collections.Counter(row["name"] if row["ph"] == "C" else row["cat"] for row in rows
                               if row["ph"] == "C" or row["ph"] == "X" and row["cat"] != "Trace")

def refused(kinds):
    try:
        count({{CUDA: kinds}})
    except RuntimeError as error:
        return str(error)

kinds = {list(OF_KIND)!r}
print(json.dumps([
    {{kind: count({{CUDA: [kind]}}) for kind in kinds}},
    {{kind: count({{CUDA: opstrobe.ProfilerActivityConfig([kind])}}) for kind in kinds[:1]}},
    count({{CUDA: kinds}}), count(CUDA), count({{CUDA: None}}), count({{CUDA: []}}),
    refused(["CONCURRENT_KERNEL", "PC_SAMPLING"]),
]))
""",
        FAKE_CUPTI_RECORDS=str(together),
    )
    by_kind, by_config, everything, usual, unnamed, nothing, refusal = found
    assert by_kind == OF_KIND
    assert by_config == {"CONCURRENT_KERNEL": OF_KIND["CONCURRENT_KERNEL"]}
    assert everything == {name: count for rows in OF_KIND.values() for name, count in rows.items()}
    expected = {name: count for kind, rows in OF_KIND.items() if kind not in WHEN_NAMED for name, count in rows.items()}
    assert usual == unnamed == expected
    assert nothing == {}
    kinds = ", ".join(sorted(OF_KIND))
    assert refusal == f"'PC_SAMPLING' is not an activity type of ProfilerActivity.CUDA (choose from {kinds})"


NODES = {
    "graph_host_node": ("HostNode", {"stream": 7, "graph id": 3, "host process": 4000, "host thread": 4004}),
    "graph_event_node": ("EventRecord", {"stream": 7, "graph id": 3, "cuda event": "0xab"}),
}


def test_nodes_of_graphs_that_are_no_work_have_rows_too(libraries, tmp_path):
    path = str(tmp_path / "trace.json")
    found = run(
        libraries,
        f"""
import time
from opstrobe import CuspyConfig, ProfilerActivityConfig

warnings.filterwarnings("ignore", "1 records could not be kept")  # an event without a time

def rows(given):
    with opstrobe.profile(activities=[CPU, {{CUDA: given}}]) as prof:
        time.sleep(0.002)  # the file's 400 microseconds lie in here
    prof.export_chrome_trace({path!r})
    with open({path!r}) as file:
        return [row for row in json.load(file)["traceEvents"] if "node" in row.get("cat", "") and row["ph"] == "X"]

switched = CuspyConfig(enable_event_node_ids=True)
print(json.dumps([
    rows(None), rows(ProfilerActivityConfig(profiler_configs=[switched])),
    rows(["GRAPH_HOST_NODE"]), rows(["GRAPH_EVENT_NODE"]), rows(["CUDA_SYNC"]),
]))
""",
        FAKE_CUPTI_RECORDS=str(SOURCE.parent / "replay" / "nodes-13.5.cupti"),
    )
    counts = [[sum(row["cat"] == kind for row in rows) for kind in NODES] for rows in found]
    assert counts == [[0, 0], [4, 1], [4, 0], [0, 1], [0, 0]]
    for row in found[1]:
        name, args = NODES[row["cat"]]
        assert row["name"] == name
        assert {key: row["args"][key] for key in args} == args
        assert row["args"]["graph node id"] in ((72, 73) if name == "HostNode" else (74,))
    (event,) = (row for row in found[1] if row["cat"] == "graph_event_node")
    assert event["dur"] == pytest.approx(0.001, abs=0.0011)


def test_a_stream_is_called_what_its_program_named_it(libraries, tmp_path):
    path = str(tmp_path / "trace.json")
    found = run(
        libraries,
        f"""
import time

def called(kinds):
    with opstrobe.profile(activities=[CPU, {{CUDA: kinds}}]) as prof:
        time.sleep(0.005)  # the file's times lie in here
    prof.export_chrome_trace({path!r})
    with open({path!r}) as file:
        rows = json.load(file)["traceEvents"]
    return [row["args"]["name"] for row in rows if row["name"] == "thread_name" and row["pid"] == 0 and row["tid"] == 7]

warnings.simplefilter("ignore")  # a range that the file does not end
print(json.dumps([called(["CONCURRENT_KERNEL"]), called(["CONCURRENT_KERNEL", "NVTX"])]))
""",
        FAKE_CUPTI_RECORDS=str(SOURCE.parent / "replay" / "extras-13.5.cupti"),
    )
    assert found == [["stream 7 "], ["stream 7 (optimizer step)"]]


def test_annotations_over_streams_need_kernels_and_their_calls(libraries):
    found = run(
        libraries,
        """
def over(kinds):
    with opstrobe.profile(activities=[CPU, {CUDA: kinds}]) as prof:
        step()
    return sum(row[1] == "gpu_user_annotation" for row in prof.profiler.trace.rows())

print(json.dumps([over(kinds) for kinds in (
    ["GPU_USER_ANNOTATION"],
    ["GPU_USER_ANNOTATION", "CONCURRENT_KERNEL"],
    ["CUDA_RUNTIME", "CONCURRENT_KERNEL"],
    ["GPU_USER_ANNOTATION", "CUDA_RUNTIME", "CONCURRENT_KERNEL"],
)]))
""",
    )
    assert found == [0, 0, 0, 1]


def test_cuda_is_supported_where_its_devices_can_be_recorded(libraries):
    code = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with opstrobe.profile(activities=[CPU, CUDA]) as prof:
        torch.ones(2) + 1
texts = [str(warning.message) for warning in caught]
print(json.dumps([CUDA in opstrobe.supported_activities(), texts, prof.profiler.use_device, len(prof.events())]))
"""
    supported, texts, device, events = run(libraries, code, FAKE_CUDA_DEVICES="0")
    assert (supported, texts, device) == (False, ["CUDA is not available, disabling CUDA profiling"], None)
    assert events > 0
    supported, texts, device, events = run(libraries, code)
    assert (supported, texts, device) == (True, [], "cuda")


def test_a_collector_that_fails_costs_no_event_of_the_host(libraries):
    texts, device, events = run(
        libraries,
        """
device.fake_cupti_fail(b"cuptiActivityEnable", 35)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with opstrobe.profile(activities=[CPU, CUDA]) as prof:
        step()
print(json.dumps([[str(w.message) for w in caught], prof.profiler.use_device, sum(e.name == "toy::mm" for e in prof.events())]))
""",
    )
    assert texts == [
        "CUDA is not recorded: cannot record devices with CUPTI: CUPTI does not collect activity: the driver lets only "
        "administrators profile (ERR_NVGPUCTRPERM)"
    ]
    assert device is None
    assert events == 1


def test_a_file_read_back_has_the_same_views(libraries, tmp_path):
    path = tmp_path / "trace.json"
    differing = run(
        libraries,
        f"""
with opstrobe.profile(activities=[CPU, CUDA], schedule=opstrobe.schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
    for _ in range(3):
        step()
        prof.step()
prof.export_chrome_trace({str(path)!r})
recorded, read = prof.views(), opstrobe.read({str(path)!r}).views()
parts = ["steps", "operators", "kernels", "kernels_by_op", "tensor_cores", "devices", "recommendations"]
print(json.dumps([part for part in parts if recorded[part] != read[part]]))
""",
    )
    assert differing == []
    (kernel,) = opstrobe.read(path).views()["kernels"]["rows"]
    assert (kernel["name"], kernel["calls"]) == ("gemm(float const*, float const*, float*)", 2)
    assert (kernel["mean_blocks_per_sm"], kernel["mean_est_occupancy_pct"]) == (2, 25)


def test_without_a_gpu_the_activity_is_refused_by_name():
    if opstrobe._core.cuda()[0]:
        pytest.skip("this machine has a GPU")
    with pytest.warns(UserWarning, match="^CUDA is not available, disabling CUDA profiling$"):
        with opstrobe.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            pass
    assert prof.profiler.use_device is None


def test_tables_and_events_show_the_time_on_the_device(libraries):
    table, kernels, times = run(
        libraries,
        """
with opstrobe.profile(activities=[CPU, CUDA]) as prof:
    for _ in range(3):
        step()
averages = {(row.key, row.device_type.name): row for row in prof.key_averages()}
mm, step_ = averages["toy::mm", "CPU"], averages["step", "CPU"]
print(json.dumps([
    prof.key_averages().table(sort_by="cuda_time_total"),
    [[kernel.name for kernel in event.kernels] for event in prof.events() if event.name == "toy::mm"],
    [mm.count, mm.self_device_time_total, mm.device_time, step_.device_time_total, step_.self_device_time_total],
]))
""",
    )
    total = re.search(r"Self CUDA time total: ([\d.]+)us", table)
    assert "Self CUDA %" in table and total and float(total[1]) == pytest.approx(69, abs=DRIFT_US)
    assert kernels == [["gemm(float const*, float const*, float*)"]] * 3
    assert times == pytest.approx([3, 60, 20, 69, 0], abs=DRIFT_US)


def test_the_device_is_paused_and_resumed_by_itself(libraries):
    found = run(
        libraries,
        """
with opstrobe.profile(activities=[CPU, CUDA]) as prof:
    step()
    prof.toggle_collection_dynamic(False, [CUDA])
    step()
    prof.toggle_collection_dynamic(True, [CUDA])
    step()
    prof.toggle_collection_dynamic(False, [CPU])
    step()
    prof.toggle_collection_dynamic(True, [CPU])
kernels = sum(row[1] == "kernel" for row in prof.profiler.trace.rows())
print(json.dumps([kernels, sum(event.name == "toy::mm" for event in prof.events())]))
""",
    )
    assert found == [3, 3]


def test_extensions_are_followed_or_refused_by_name(libraries):
    found = run(
        libraries,
        """
from opstrobe import CuspyConfig, ProfilerActivityConfig

def record(extension):
    config = ProfilerActivityConfig(profiler_configs=[extension])
    try:
        with opstrobe.profile(activities=[CPU, {CUDA: config}]) as prof:
            step()
            device.fake_cupti_is_enabled.restype = ctypes.c_bool
            return [device.fake_cupti_is_enabled(kind) for kind in (10, 20, 38, 36, 56)]
    except RuntimeError as error:
        return str(error)

print(json.dumps([
    record(CuspyConfig()),
    record(CuspyConfig(enable_cuda_sync_events=True, enable_environment_counters=True)),
    record(CuspyConfig(enable_event_node_ids=True)),
]))
""",
    )
    assert found == [
        [True, False, False, False, True],  # kernels, the environment, synchronisation, events, nodes on the host
        [True, True, True, True, True],
        [True, False, False, True, True],
    ]


def test_nodes_that_record_events_are_refused_by_name_where_cupti_does_not_tell_them(libraries):
    refusals, enabled = run(
        libraries,
        """
from opstrobe import CuspyConfig, ProfilerActivityConfig

def refusal(given):
    try:
        with opstrobe.profile(activities=[CPU, {CUDA: given}]):
            pass
    except RuntimeError as error:
        return str(error)

refusals = [
    refusal(ProfilerActivityConfig(profiler_configs=[CuspyConfig(enable_event_node_ids=True)])),
    refusal(["GRAPH_EVENT_NODE"]),
    refusal(["GRAPH_HOST_NODE"]),
]
device.fake_cupti_is_enabled.restype = ctypes.c_bool
with opstrobe.profile(activities=[CPU, {CUDA: ["GRAPH_HOST_NODE"]}]):
    enabled = device.fake_cupti_is_enabled(56)
print(json.dumps([refusals, enabled]))
""",
        FAKE_CUPTI_VERSION="130200",
    )
    reason = "needs CUPTI 13.5, which says which node recorded an event; there is "
    for refusal, asked in zip(refusals, ("CuspyConfig(enable_event_node_ids=True)", "GRAPH_EVENT_NODE"), strict=False):
        assert refusal.startswith(f"{asked} {reason}") and refusal.endswith(", version 130200")
    assert refusals[2] is None
    assert enabled is False


def test_dependencies_of_graphs_are_arrows_between_its_nodes(libraries, tmp_path):
    """A node waits for the one before; the third, which has no work, is between the second and the last."""
    paths = [tmp_path / "asked.json", tmp_path / "usual.json"]
    run(
        libraries,
        f"""
from opstrobe import CuspyConfig, ProfilerActivityConfig

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_cuda_add_edge.argtypes = [ctypes.c_uint64] * 3
device.fake_cupti_capture.argtypes = [ctypes.c_uint64] * 2
device.fake_cupti_instantiate.argtypes = [ctypes.c_uint64, ctypes.c_int]
device.fake_cupti_launch_graph.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint32]
for node in (1, 2, 3):
    driver.fake_cuda_add_edge(7, node, node + 1)

def replay(path, config):
    with opstrobe.profile(activities=[CPU, {{CUDA: ProfilerActivityConfig(profiler_configs=[config])}}]) as prof:
        for node in (1, 2, 3, 4):
            device.fake_cupti_capture(node, 0)
            device.fake_cupti_capture(node + 10, node)
        device.fake_cupti_instantiate(7, 0)
        for _ in range(2):
            device.fake_cupti_launch_graph((ctypes.c_uint64 * 3)(11, 12, 14), 3)
    prof.export_chrome_trace(path)

replay({str(paths[0])!r}, CuspyConfig(enable_graph_dependencies=True))
replay({str(paths[1])!r}, CuspyConfig())
print("null")
""",
    )
    asked, usual = (json.loads(path.read_text(), parse_float=Decimal)["traceEvents"] for path in paths)
    kernels = [row for row in asked if row.get("cat") == "kernel"]
    ends = {row["args"]["graph node id"]: set() for row in kernels}
    starts = [row for row in asked if row.get("cat") == "ac2g" and row["ph"] == "s"]
    finishes = {row["id"]: row for row in asked if row.get("cat") == "ac2g" and row["ph"] == "f"}
    by_start = {row["ts"]: row for row in kernels}
    for arrow in starts:
        target = by_start[finishes[arrow["id"]]["ts"]]
        if arrow["id"] < 2**40:
            ends[target["args"]["graph node id"]].add("call")
            continue
        (source,) = (row for row in kernels if row["ts"] <= arrow["ts"] < row["ts"] + row["dur"])
        assert arrow["ts"] == pytest.approx(source["ts"] + source["dur"], abs=2 * NANOSECOND)
        assert source["args"]["correlation"] == target["args"]["correlation"]
        ends[target["args"]["graph node id"]].add(source["args"]["graph node id"])
    assert ends == {11: {"call"}, 12: {11}, 14: {12}}
    assert len(starts) == len(finishes) == 2 * 3
    launches = [row for row in usual if row.get("cat") == "ac2g" and row["ph"] == "s"]
    assert len(launches) == 2 * 3 and max(row["id"] for row in launches) < 2**40


def test_advice_has_its_evidence_from_what_the_device_did(libraries):
    """Kernels of two microseconds, from operators that take the host much longer. tests/gpu/test_replay.c has more of it."""
    ids, checked = run(
        libraries,
        """
with opstrobe.profile(activities=[CPU, CUDA], schedule=opstrobe.schedule(wait=0, warmup=1, active=6, repeat=1)) as prof:
    for _ in range(7):
        for _ in range(30):
            device.fake_cupti_launch(NAME, 264, 256, 1000, 2000)
            torch.ones(4, 4)
        prof.step()
advice = prof.advise()
print(json.dumps([[finding["id"] for finding in advice["findings"]], advice["checked"]]))
""",
    )
    assert "device-idle" in ids
    assert {"launch-bound", "low-occupancy", "pageable-copies"} <= set(checked)


def test_a_file_of_records_is_replayed_into_a_run(libraries):
    found = run(
        libraries,
        """
import time
with opstrobe.profile(activities=[CPU, CUDA]) as prof:
    time.sleep(0.02)  # the file's ten milliseconds lie in here
rows = [row[1] for row in prof.profiler.trace.rows()]
print(json.dumps([rows.count("kernel"), rows.count("cuda_runtime")]))
""",
        FAKE_CUPTI_RECORDS=str(SOURCE.parent / "replay" / "launches-12.9.cupti"),
    )
    assert found == [60, 60]


def test_versions_of_cuda_are_those_of_the_process(libraries, tmp_path):
    """The runtime's version is that of the loaded library, such as torch's; without one it is left out."""
    source = tmp_path / "cudart.c"
    source.write_text("int cudaRuntimeGetVersion(int *version) { *version = 12080; return 0; }\n")
    soname = "libcudart.so.12"
    command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", source, "-o", tmp_path / "of-its-own-name.so"]
    subprocess.run(command, check=True)
    without, with_runtime = run(
        libraries,
        f"""
def versions():
    with opstrobe.profile(activities=[CPU, CUDA]) as prof:
        step()
    prof.export_chrome_trace({str(tmp_path / "trace.json")!r})
    with open({str(tmp_path / "trace.json")!r}) as file:
        return {{key: value for key, value in json.load(file).items() if key.endswith("_version")}}

without = versions()
ctypes.CDLL({str(tmp_path / "of-its-own-name.so")!r})
print(json.dumps([without, versions()]))
""",
        FAKE_CUDA_VERSION="12090",
    )
    assert without == {"cupti_version": 130500, "cuda_driver_version": 12090}
    assert with_runtime == {**without, "cuda_runtime_version": 12080}


def test_all_devices_in_use_are_waited_for_and_no_other(libraries):
    """Two of three are; the driver of the test aborts where a context would be made. Torch is not asked to use one either."""
    kernels, lost, initialised = run(
        libraries,
        """
def refuse():
    raise AssertionError("torch is made to use a device")
torch.cuda.is_available = lambda: True
torch.cuda.synchronize = refuse
device.fake_cupti_launch_long.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
with opstrobe.profile(activities=[CPU, CUDA]) as prof:
    for ordinal in range(2):
        device.fake_cupti_launch_long(b"long", ordinal)
kernels = [[event.device_index, event.device_time_total > 0] for event in prof.events() if event.name == "long"]
print(json.dumps([kernels, prof.profiler.trace.lost, torch.cuda.is_initialized()]))
""",
        FAKE_CUDA_DEVICES="3",
        FAKE_CUDA_CONTEXTS="2",
    )
    assert sorted(kernels) == [[0, True], [1, True]]
    assert (lost, initialised) == (0, False)


def test_a_libcupti_that_comes_with_torch_is_found_later(libraries):
    found = run(
        libraries,
        """
there, os.environ["OPSTROBE_CUPTI"] = os.environ["OPSTROBE_CUPTI"], "/nowhere"
before = CUDA in opstrobe.supported_activities()
os.environ["OPSTROBE_CUPTI"] = there
print(json.dumps([before, CUDA in opstrobe.supported_activities()]))
""",
    )
    assert found == [False, True]


def test_the_libcupti_of_the_package_beside_ours_is_found():
    packages = headers().parents[2]
    library = packages / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
    if pathlib.Path(opstrobe.__file__).parents[1] != packages or not library.exists():
        pytest.skip("the package nvidia-cuda-cupti is not installed next to this one")
    environment = {key: value for key, value in os.environ.items() if key not in ("OPSTROBE_CUPTI", "CUDA_HOME")}
    code = "from opstrobe import _core; print(_core.cupti())"
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    path = re.search(r"/[^',]*libcupti[^',\s]*", found.stdout)  # without a driver it does not report its version
    assert path and pathlib.Path(path[0]).resolve() == library.resolve()


def test_doctor_asks_a_process_that_has_torch(libraries, tmp_path, monkeypatch):
    """A package that has a libcupti in a separate path, as torch for CUDA does."""
    library = shutil.copy(libraries / "libfake-cupti.so", tmp_path / "libcupti.so.12")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    monkeypatch.delenv("OPSTROBE_CUPTI", raising=False)
    monkeypatch.setattr(doctor, "_TRIAL", f"import ctypes\nctypes.CDLL({str(library)!r})\n" + doctor._TRIAL)
    (gpu,) = [finding for finding in doctor._examine() if finding.subject == "gpu"]
    assert (gpu.status, gpu.text) == (doctor.OK, f"1 CUDA device, recorded with {library}, version 130500")
