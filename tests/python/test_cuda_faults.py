# SPDX-License-Identifier: Apache-2.0
"""Reasons why CUDA's devices cannot be recorded: each is reported once, and the host loses no event. Over the
libraries of test_cuda.py."""

import ctypes
import struct

import pytest
from test_cuda import libraries, run  # noqa: F401

# CUptiResult
INVALID_CONTEXT, NOT_INITIALIZED, INSUFFICIENT_PRIVILEGES, INVALID_KIND, UNKNOWN = 3, 15, 35, 21, 999
DROPPED = 7
LOST = """
def lost(*_):
    raise RuntimeError("CUDA error: unspecified launch failure\\nMore of it, in several lines.")
torch.cuda.is_initialized = lambda: True
torch.cuda.synchronize = lost
"""
# Two windows, so that a repeated report would be seen; the events of the host as without devices.
RECORD = """
def is_of_host(event):
    return event.device_type.name == "CPU" and event.name.split(":")[0] in ("aten", "toy", "step")

def record(activities):
    windows = []
    ready = lambda prof: windows.append([e.name for e in prof.events() if is_of_host(e)])
    schedule = opstrobe.schedule(wait=0, warmup=1, active=1, repeat=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with opstrobe.profile(activities=activities, schedule=schedule, on_trace_ready=ready) as prof:
            for _ in range(4):
                step()
                prof.step()
    return windows, [str(warning.message) for warning in caught], prof.profiler.use_device

{fault}
host, _, _ = record([CPU])
windows, texts, used = record([CPU, CUDA])
print(json.dumps([windows == host and len(host) == 2 and "toy::mm" in host[1], texts, used]))
"""


def failing(function, result):
    return f'device.fake_cupti_fail(b"{function}", {result})'


@pytest.mark.parametrize(
    ("fault", "environment", "used", "text"),
    [
        ("", {}, "cuda", None),
        ("", {"LD_LIBRARY_PATH": ""}, None, "CUDA is not available, disabling CUDA profiling"),
        ("", {"FAKE_CUDA_DEVICES": "0"}, None, "CUDA is not available, disabling CUDA profiling"),
        (
            'os.environ["OPSTROBE_CUPTI"] = "/nowhere"',
            {},
            None,
            "CUDA is not available, disabling CUDA profiling: no libcupti was found: neither with torch, nor by the loader, "
            "nor under CUDA_HOME; OPSTROBE_CUPTI may name one",
        ),
        (
            failing("cuptiGetVersion", NOT_INITIALIZED),
            {},
            None,
            "CUDA is not available, disabling CUDA profiling: '{cupti}' does not report its version",
        ),
        (
            failing("cuptiSubscribe", NOT_INITIALIZED),
            {"FAKE_CUDA_VERSION": "12020"},
            None,
            "CUDA is not recorded: cannot record devices with CUPTI: CUPTI does not start: the driver is made for CUDA 12.2, and "
            "'{cupti}' for CUDA 13.5 (15)",
        ),
        (
            failing("cuptiActivityEnable", INSUFFICIENT_PRIVILEGES),
            {},
            None,
            "CUDA is not recorded: cannot record devices with CUPTI: CUPTI does not collect activity: the driver lets only "
            "administrators profile (ERR_NVGPUCTRPERM)",
        ),
        (
            "device.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), None, None)",
            {},
            None,
            "CUDA is not recorded: cannot record devices with CUPTI: CUPTI does not start: another profiler of CUDA is active in "
            "this process",
        ),
        (
            LOST + failing("cuptiActivityFlushAll", UNKNOWN),
            {},
            "cuda",
            "the record of CUDA's devices may be incomplete: they could not be waited for: CUDA error: unspecified launch failure",
        ),
        (
            failing("cuptiActivityFlushAll", INVALID_CONTEXT),
            {},
            "cuda",
            "the record of CUDA's devices may be incomplete: CUPTI could not finish recording devices: CUPTI did not deliver "
            "all its records: CUPTI_ERROR (3)",
        ),
        (
            failing("cuptiActivityGetNextRecord", INVALID_KIND),
            {},
            "cuda",
            "the record of CUDA's devices may be incomplete: CUPTI could not finish recording devices: CUPTI could not read 1 of "
            "its buffers (1 records are missing)",
        ),
    ],
    ids=[
        "none", "no driver", "no device", "no libcupti", "a broken libcupti", "an old driver", "no permission",
        "another profiler", "a lost device", "a context that is gone", "a broken buffer",
    ],
)  # fmt: skip
def test_a_fault_is_reported_once_and_the_host_is_complete(libraries, fault, environment, used, text):  # noqa: F811
    if environment.get("LD_LIBRARY_PATH") == "":
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            pass
        else:
            pytest.skip("this machine has a driver")
    found = run(libraries, RECORD.replace("{fault}", fault), **environment)
    texts = [] if text is None else [text.replace("{cupti}", str(libraries / "libfake-cupti.so"))]
    assert found == [True, texts, used]


def test_dropped_records_are_reported_in_each_window(libraries, tmp_path):  # noqa: F811
    """It has no buffer left: a file says how many that cost."""
    path = tmp_path / "dropped.cupti"
    section = struct.pack("<IIq", 7, 8, DROPPED)
    clock = struct.pack("<IIqq", 3, 16, 0, 0)
    path.write_bytes(b"OPSCUPTI" + struct.pack("<II", 2, 130500) + clock + section)
    whole, texts, used = run(libraries, RECORD.replace("{fault}", ""), FAKE_CUPTI_RECORDS=str(path))
    assert (whole, used) == (True, "cuda")
    assert texts == [f"{DROPPED} records could not be kept and are missing from the profile"] * 2


def test_a_forked_child_gets_the_reason_and_its_parent_is_complete(libraries):  # noqa: F811
    child, parent, kernels = run(
        libraries,
        """
def record(inside):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with opstrobe.profile(activities=[CPU, CUDA]) as prof:
            step()
            inside()
    names = [e.name for e in prof.events()]
    return [[str(w.message) for w in caught], prof.profiler.use_device, names.count("toy::mm"), names.count("step")]

def fork():
    read, write = os.pipe()
    if os.fork() == 0:
        events = record(lambda: None)
        os.write(write, json.dumps(events).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        children.append(json.loads(pipe.read()))

children = []
parent = record(fork)
kernels = record(lambda: None)
print(json.dumps([children[0], parent, kernels]))
""",
    )
    reason = "the process was forked from one that has initialised CUDA"
    assert child == [[f"CUDA is not available, disabling CUDA profiling: {reason}"], None, 1, 1]
    assert parent == kernels == [[], "cuda", 1, 2]  # the annotation over the stream is the second
