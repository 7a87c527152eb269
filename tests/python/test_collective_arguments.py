# SPDX-License-Identifier: Apache-2.0
"""Collective keys on record_param_comms and on the kernels it launches, as torch.profiler writes them. The operator
is torch's, made by the macro that its NCCL backend uses; the device is tests/gpu/fake_cupti/."""

import json
import os
import subprocess
import sysconfig

import pytest
from test_cuda import libraries, run  # noqa: F401
from torch_library import build

torch = pytest.importorskip("torch")

KEYS = {
    "Collective name", "dtype", "In msg nelems", "Out msg nelems", "In split size", "Out split size",
    "Global rank start", "Global rank stride", "Group size", "Process Group Name", "Process Group Description",
    "Process Group Ranks", "Rank", "Src Rank", "Dst Rank", "Seq", "Comms Id",
    "Is asynchronized op", "Input Tensors start", "Output Tensors start",
}  # fmt: skip
# Name, rank, elements in and out, splits, size of the group, its name. Lists of 30 are whole, longer ones are not.
CALLS = """
def calls(launch):
    library.collective(b"allreduce", 1, 6, 6, 0, 4, b"0", launch)
    library.collective(b"all_to_allv", 0, 30, 60, 30, 31, b"3", launch)
    library.collective(b"all_to_allv", 63, 64, 64, 31, 64, "\\u00e9".encode(), launch)
    library.collective(b"send", 1, 3, 3, 0, 2, b"", launch)
    library.collective(b"recv", 1, 3, 3, 0, 2, b"", launch)
    library.collective(b"barrier", 0, 1, 1, 0, 1, b"1", launch)
"""
RECORD = """
import torch.profiler
launch_type = ctypes.CFUNCTYPE(None)
library = ctypes.PyDLL({library!r})
library.collective.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
                               ctypes.c_int, ctypes.c_char_p, launch_type]
{calls}
launch = launch_type(lambda: device.fake_cupti_launch(b"ncclDevKernel", 8, 256, 5000, 20000))
with opstrobe.profile(activities=[CPU, CUDA], record_shapes={shapes}) as ours:
    calls(launch)
ours.export_chrome_trace({folder!r} + "/ours.json")
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes={shapes}) as theirs:
    calls(launch_type(lambda: None))
theirs.export_chrome_trace({folder!r} + "/theirs.json")
print("null")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build("collectives.cpp", tmp_path_factory.mktemp("collectives"))


def collective(row):
    return {key: value for key, value in row["args"].items() if key in KEYS}


@pytest.mark.parametrize("shapes", [False, True])
def test_collectives_are_described_as_torch_does(libraries, library, tmp_path, shapes):  # noqa: F811
    run(libraries, RECORD.format(library=str(library), calls=CALLS, shapes=shapes, folder=str(tmp_path)))
    ours, theirs = (json.loads((tmp_path / f"{name}.json").read_text())["traceEvents"] for name in ("ours", "theirs"))
    described, expected = (
        [collective(row) for row in rows if row["name"] == "record_param_comms" and row["ph"] == "X"]
        for rows in (ours, theirs)
    )
    assert described == expected and len(expected) == 6
    kernels = [row for row in ours if row.get("cat") == "kernel"]
    assert [collective(row) for row in kernels] == described
    assert all("grid" in row["args"] for row in kernels)
    if shapes:
        return
    table = subprocess.run(
        [
            os.path.join(sysconfig.get_path("scripts"), "opstrobe"),
            "analyze",
            "nccl_collectives",
            str(tmp_path / "ours.json"),
            "--format",
            "json",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "allreduce" in table and "all_to_allv" in table and "recv" in table
