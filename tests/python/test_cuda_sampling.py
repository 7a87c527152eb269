# SPDX-License-Identifier: Apache-2.0
"""Counters of the hardware of CUDA's devices, sampled while a profile records. Over the libraries of test_cuda.py, whose device
samples on request: metric m of sample n, both counted from 0, is 100 m + n."""

import itertools
import json
from decimal import Decimal

import pytest
from test_cuda import libraries, run  # noqa: F401
from test_cuda_faults import RECORD, failing

import opstrobe

# CUptiResult
NOT_INITIALIZED, INSUFFICIENT_PRIVILEGES, UNKNOWN = 15, 35, 999
ACTIVE = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SAMPLING = f"""
from opstrobe import PerformanceMetricsConfig, ProfilerActivityConfig

class Sampling(ctypes.Structure):
    _fields_ = [("started_ns", ctypes.c_uint64), ("interval", ctypes.c_uint64), ("by_time", ctypes.c_bool),
                ("keeps_latest", ctypes.c_bool)]

if hasattr(device, "fake_cupti_sampling"):
    device.fake_cupti_sampling.restype = Sampling
    device.fake_cupti_sample.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32]

def sampling(*arguments, **options):
    return {{CUDA: ProfilerActivityConfig(profiler_configs=[PerformanceMetricsConfig(*arguments, **options)])}}

def sample(count, length_ns=1000):
    device.fake_cupti_sample(device.fake_cupti_sampling().started_ns, length_ns, count)

ACTIVE, DRAM = {ACTIVE!r}, {DRAM!r}
"""


def counters(path):
    rows = [row for row in json.loads(path.read_text(), parse_float=Decimal)["traceEvents"] if row["ph"] == "C"]
    return {name: [row for row in rows if row["name"] == name] for name in dict.fromkeys(row["name"] for row in rows)}


def test_samples_are_counters_of_the_device(libraries, tmp_path):  # noqa: F811
    path = tmp_path / "trace.json"
    interval, by_time, kernels = run(
        libraries,
        SAMPLING
        + f"""
with opstrobe.profile(activities=[CPU, sampling([ACTIVE, DRAM, "lts__t_bytes.sum"], sampling_interval_ms=0.5)]) as prof:
    sample(3)
    step()
    sampled = device.fake_cupti_sampling()
prof.export_chrome_trace({str(path)!r})
print(json.dumps([sampled.interval, sampled.by_time, sum(row[1] == "kernel" for row in prof.profiler.trace.rows())]))
""",
    )
    assert (interval, by_time, kernels) == (500_000, True, 1)
    found = counters(path)
    assert {name: [row["args"] for row in rows] for name, rows in found.items()} == {
        "SM Active (%)": [{"value": 0}, {"value": 1}, {"value": 2}],
        "DRAM BW (%)": [{"value": 100}, {"value": 101}, {"value": 102}],
        "lts__t_bytes.sum": [{"value": 200}, {"value": 201}, {"value": 202}],
    }
    trace = json.loads(path.read_text(), parse_float=Decimal)
    (operator,) = (row for row in trace["traceEvents"] if row["name"] == "toy::mm")
    for rows in found.values():
        assert {row["pid"] for row in rows} == {"GPU 0 Counters"}
        assert all(abs(b["ts"] - a["ts"] - 1) <= Decimal("0.002") for a, b in itertools.pairwise(rows))
        assert 0 < operator["ts"] - rows[0]["ts"] < 1_000_000
    assert trace["pm_sampling"] == {
        "device": 0,
        "chip": "GH100",
        "interval_ns": 500_000,
        "metrics": {"SM Active (%)": ACTIVE, "DRAM BW (%)": DRAM, "lts__t_bytes.sum": "lts__t_bytes.sum"},
    }
    assert opstrobe.read(path).trace.metadata()["pm_sampling"] == json.dumps(
        trace["pm_sampling"], separators=(",", ":")
    )


def test_the_kind_alone_samples_the_usual_metrics(libraries, tmp_path):  # noqa: F811
    path = tmp_path / "trace.json"
    found = run(
        libraries,
        SAMPLING
        + f"""
with opstrobe.profile(activities=[CPU, {{CUDA: ["CONCURRENT_KERNEL", "PM_SAMPLING"]}}]) as prof:
    sample(2)
    step()
    sampled = device.fake_cupti_sampling()
prof.export_chrome_trace({str(path)!r})
with opstrobe.profile(activities=[CPU, CUDA]):
    usual = device.fake_cupti_sampling().started_ns
print(json.dumps([sampled.interval, usual]))
""",
    )
    assert found == [1_000_000, 0]
    assert list(counters(path)) == ["SM Active (%)", "DRAM BW (%)"]


def test_sampling_is_paused_with_the_device(libraries, tmp_path):  # noqa: F811
    path = tmp_path / "trace.json"
    paused = run(
        libraries,
        SAMPLING
        + f"""
with opstrobe.profile(activities=[CPU, sampling([ACTIVE])]) as prof:
    sample(2)
    prof.toggle_collection_dynamic(False, [CUDA])
    paused = device.fake_cupti_sampling().started_ns
    prof.toggle_collection_dynamic(True, [CUDA])
    sample(3)
prof.export_chrome_trace({str(path)!r})
print(json.dumps(paused))
""",
    )
    assert paused == 0
    assert [row["args"]["value"] for row in counters(path)["SM Active (%)"]] == [0, 1, 2, 3, 4]


def test_wrong_metrics_are_refused_by_name(libraries):  # noqa: F811
    found = run(
        libraries,
        SAMPLING
        + """
def refusal(names):
    prof = opstrobe.profile(activities=[CPU, sampling(names)])
    try:
        prof.start()
    except ValueError as error:
        return str(error)

refusals = [refusal([ACTIVE, "cycles"]), refusal([f"unit__{i}.sum" for i in range(5)])]
with opstrobe.profile(activities=[CPU, sampling([ACTIVE])]) as prof:
    step()
print(json.dumps([refusals, sum(row[1] == "kernel" for row in prof.profiler.trace.rows())]))
""",
    )
    assert found == [
        [
            "cannot record devices with CUPTI: CUPTI does not know these metrics of GH100: cycles",
            "cannot record devices with CUPTI: the metrics need 2 passes on GH100, of which sampling has one: unit__0.sum "
            "unit__1.sum unit__2.sum unit__3.sum unit__4.sum",
        ],
        1,
    ]


NOT_SAMPLED = "counters of CUDA's hardware are not sampled: "
INCOMPLETE = "the record of CUDA's devices may be incomplete: CUPTI could not finish recording devices: "


@pytest.mark.parametrize(
    ("fault", "library", "text"),
    [
        ("", "libfake-cupti.so", None),
        ("", "libold-cupti.so", NOT_SAMPLED + "'{cupti}' does not sample counters: CUPTI 12.6 or newer is needed"),
        (
            failing("cuptiPmSamplingEnable", INSUFFICIENT_PRIVILEGES),
            "libfake-cupti.so",
            NOT_SAMPLED
            + "CUPTI does not sample counters: the driver lets only administrators profile (ERR_NVGPUCTRPERM)",
        ),
        (
            failing("cuptiProfilerInitialize", NOT_INITIALIZED),
            "libfake-cupti.so",
            NOT_SAMPLED
            + "CUPTI does not sample counters: libnvperf_host.so and libnvperf_target.so, which belong to '{cupti}', "
            "cannot be loaded (15)",
        ),
        (
            "device.cuptiPmSamplingEnable((ctypes.c_size_t * 4)(32))",
            "libfake-cupti.so",
            NOT_SAMPLED + "CUPTI does not sample counters: device 0 is already being sampled (7)",
        ),
        (
            failing("cuptiPmSamplingDecodeData", UNKNOWN),
            "libfake-cupti.so",
            INCOMPLETE + "CUPTI samples counters no more: CUPTI_ERROR (999) (1 records are missing)",
        ),
        (
            "overflow = device.fake_cupti_overflow",
            "libfake-cupti.so",
            INCOMPLETE
            + "samples of counters are missing: the hardware's buffer overflowed, which a longer interval helps "
            "against (1 records are missing)",
        ),
    ],
    ids=["none", "an old libcupti", "no permission", "no libnvperf", "another sampler", "a lost device", "overflow"],
)
def test_a_fault_is_told_once_and_all_else_is_whole(libraries, fault, library, text):  # noqa: F811
    record = RECORD.replace("{fault}", fault).replace("record([CPU, CUDA])", "record([CPU, sampling([ACTIVE])])")
    begin = "overflow = lambda: None\n"
    step = "                step()\n"
    assert record.count(step) == 1
    record = record.replace(step, step + "                overflow()\n")
    found = run(libraries, SAMPLING + begin + record, OPSTROBE_CUPTI=str(libraries / library))
    assert found == [True, [] if text is None else [text.replace("{cupti}", str(libraries / library))], "cuda"]
