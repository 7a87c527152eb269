# SPDX-License-Identifier: Apache-2.0
"""Occupancy compared with Kineto's for the kernels of real traces, of Volta to Blackwell, and with NVIDIA's own
calculator."""

import ctypes
import gzip
import json
import os
import pathlib
import random
import subprocess

import pytest
from test_cuda import headers

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACES = pathlib.Path(os.environ.get("OPSTROBE_TRACES", ROOT.parent / "shared" / "traces"))
# One or two of each architecture that the folder has.
FILES = [
    "hta/ns_resolution/rank-0.json.gz",
    "hta/param_resnet/trace.json.gz",
    "hta/triton/trace.json.gz",
    "hta/nccl_args/rank-0.json.gz",
    "hta/h100_bert_small/trace.json.gz",
    "hta/b200_vllm_eager/trace.json.gz",
]
# What a block may have without asking for more. Kineto does not ask, and says 0 of kernels that have more (its tables
# would say the same as ours if it did).
SHARED_BYTES_UNASKED = 48 * 1024


class Multiprocessor(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint32)
        for name in "major minor count warp_size threads_max registers shared reserved blocks_max".split()
    ]


class Shape(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3)] + [
        (name, ctypes.c_uint32) for name in ("registers", "shared")
    ]


class Occupancy(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint32)
        for name in "active limits by_warps by_registers by_shared by_blocks registers_a_block shared_a_block".split()
    ] + [(name, ctypes.c_double) for name in "blocks warps percent".split()]


@pytest.fixture(scope="module")
def occupancy_of(tmp_path_factory):
    library = tmp_path_factory.mktemp("occupancy") / "occupancy.so"
    source = ROOT / "src" / "base" / "occupancy.c"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT / 'src'}", source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).ops_occupancy_of
    function.restype = Occupancy
    return function


def device_of(properties):
    return Multiprocessor(
        properties["computeMajor"],
        properties["computeMinor"],
        properties["numSms"],
        properties["warpSize"],
        properties["maxThreadsPerMultiprocessor"],
        properties["regsPerMultiprocessor"],
        properties["sharedMemPerMultiprocessor"],
        1024 if properties["computeMajor"] >= 8 else 0,
        0,
    )


@pytest.mark.parametrize("name", FILES)
def test_occupancy_is_that_of_kineto(name, occupancy_of):
    if not TRACES.is_dir():
        pytest.skip(f"no shared traces in {TRACES}; OPSTROBE_TRACES names their folder")
    with gzip.open(TRACES / name) as file:
        trace = json.load(file)
    devices = {properties["id"]: device_of(properties) for properties in trace["deviceProperties"]}
    compared = 0
    for event in trace["traceEvents"]:
        args = event.get("args", {})
        if event.get("cat") != "kernel" or args.get("device") not in devices:
            continue
        if "est. achieved occupancy %" not in args or args["shared memory"] > SHARED_BYTES_UNASKED:
            continue
        triple = ctypes.c_uint32 * 3
        shape = Shape(
            triple(*args["grid"]), triple(*args["block"]), args["registers per thread"], args["shared memory"]
        )
        found = occupancy_of(ctypes.byref(devices[args["device"]]), ctypes.byref(shape))
        assert found.percent == pytest.approx(args["est. achieved occupancy %"], abs=0.51), args
        assert found.blocks == pytest.approx(args["blocks per SM"], rel=1e-3, abs=1e-6), args
        assert found.warps == pytest.approx(args["warps per SM"], rel=1e-3, abs=1e-6), args
        compared += 1
    assert compared > 0


KIB = 1024
# What a multiprocessor has, by compute capability (CUDA C++ Programming Guide, technical specifications): threads, bytes of
# shared memory, of those for a block that asks, and held back of each block by the driver. All have 65,536 registers.
ARCHITECTURES = {
    (7, 0): (2048, 96 * KIB, 96 * KIB, 0),
    (7, 2): (2048, 96 * KIB, 96 * KIB, 0),
    (7, 5): (1024, 64 * KIB, 64 * KIB, 0),
    (8, 0): (2048, 164 * KIB, 163 * KIB, KIB),
    (8, 6): (1536, 100 * KIB, 99 * KIB, KIB),
    (8, 7): (1536, 164 * KIB, 163 * KIB, KIB),
    (8, 9): (1536, 100 * KIB, 99 * KIB, KIB),
    (9, 0): (2048, 228 * KIB, 227 * KIB, KIB),
    (10, 0): (2048, 228 * KIB, 227 * KIB, KIB),
    (10, 1): (1536, 228 * KIB, 227 * KIB, KIB),
    (10, 3): (2048, 228 * KIB, 227 * KIB, KIB),
    (11, 0): (1536, 228 * KIB, 227 * KIB, KIB),
    (12, 0): (1536, 100 * KIB, 99 * KIB, KIB),
    (12, 1): (1536, 100 * KIB, 99 * KIB, KIB),
}
SHAPES = 3000


class NvidiaDevice(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int) for name in "major minor threads_max registers shared shared_optin reserved".split()
    ]


class NvidiaResult(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int)
        for name in "active limits by_warps by_registers by_shared by_blocks by_barriers registers_a_block shared_a_block".split()
    ]


@pytest.fixture(scope="module")
def nvidia_occupancy(tmp_path_factory):
    library = tmp_path_factory.mktemp("nvidia_occupancy") / "occupancy.so"
    source = pathlib.Path(__file__).parent / "occupancy.cpp"
    subprocess.run(["c++", "-shared", "-fPIC", "-isystem", headers(), source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).nvidia_occupancy
    function.restype = NvidiaResult
    return function


@pytest.mark.parametrize("capability", ARCHITECTURES, ids=[f"sm_{major}{minor}" for major, minor in ARCHITECTURES])
def test_occupancy_is_that_of_nvidia(capability, occupancy_of, nvidia_occupancy):
    draw = random.Random(7)
    threads_max, shared_max, shared_optin, reserved = ARCHITECTURES[capability]
    theirs = NvidiaDevice(*capability, threads_max, 65536, shared_max, shared_optin, reserved)
    ours = Multiprocessor(*capability, 1, 32, threads_max, 65536, shared_max, reserved, 0)
    names = [name for name, _ in NvidiaResult._fields_ if name != "by_barriers"]
    for _ in range(SHAPES):
        threads = draw.choice((draw.randint(1, 1024), 32 * draw.randint(1, 32)))
        registers = draw.randint(0, 255)
        shared = draw.choice((0, draw.randint(0, SHARED_BYTES_UNASKED), draw.randint(0, shared_optin)))
        triple = ctypes.c_uint32 * 3
        shape = Shape(triple(10**6, 1, 1), triple(threads, 1, 1), registers, shared)
        found = occupancy_of(ctypes.byref(ours), ctypes.byref(shape))
        wanted = nvidia_occupancy(ctypes.byref(theirs), threads, registers, shared)
        what = (threads, registers, shared)
        assert [getattr(found, name) for name in names] == [getattr(wanted, name) for name in names], what
        assert wanted.by_barriers == 2**31 - 1  # which rows say too
