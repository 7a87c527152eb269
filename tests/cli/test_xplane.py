# SPDX-License-Identifier: Apache-2.0
"""Profiles of XLA (.xplane.pb): what is read of planes of hosts, GPUs and TPUs. The files are made here, by the fields of xplane.proto."""

from __future__ import annotations

import json
import random

import pytest
from protobuf import field, message

START_NS = 1_700_000_000_000_000_000


class Plane:
    """A plane, with the tables of names that its events and stats need."""

    def __init__(self, name, **stats):
        self.events, self.stats, self.lines = {}, {}, []
        self.name, self.own = name, [(6, self.stat(key, value)) for key, value in stats.items()]

    def stat(self, name, value):
        number = self.stats.setdefault(name.rstrip("&"), len(self.stats) + 1)
        if name.endswith("&"):  # the text is in the table of names
            return message((1, number), (7, self.stats.setdefault(value, len(self.stats) + 1)))
        return message((1, number), ({float: 2, int: 4, str: 5, bytes: 6}[type(value)], value))

    def event(self, name, start_ps, duration_ps=None, **stats):
        number, _ = self.events.setdefault(name, (len(self.events) + 1, None))
        duration = [] if duration_ps is None else [(3, duration_ps)]
        return message(
            (1, number), (2, start_ps), *duration, *((4, self.stat(key, value)) for key, value in stats.items())
        )

    def line(self, number, name, *events, start_ns=0):
        self.lines.append((3, message((1, number), (2, name), (3, start_ns), *((4, event) for event in events))))

    def message(self):
        names = [
            (4, message((1, number), (2, message((1, number), (2, name), *([(4, shown)] if shown else [])))))
            for name, (number, shown) in self.events.items()
        ]
        names += [
            (5, message((1, number), (2, message((1, number), (2, name))))) for name, number in self.stats.items()
        ]
        return field(1, message((2, self.name), *self.lines, *names, *self.own))


def make_planes(base_ns=0):
    """A host that launches a kernel and a copy in its step, and the GPU's streams, in picoseconds from 5000 ns on."""
    host = Plane("/host:CPU", process_id=42)
    host.line(
        7 << 40,
        "python",
        host.event("train", 0, 9_000_000, step_num=3, _r=1),
        host.event("$train.py:12 step", 500_000, 8_000_000),
        host.event("dot.1", 1_000_000, 3_000_000, **{"hlo_op&": "dot.1"}),
        host.event("cuLaunchKernel", 2_000_000, 1_000_000, correlation_id=9),
        host.event("a mark", 6_000_500),
        start_ns=base_ns + 5000,
    )
    gpu = Plane("/device:GPU:1", memory_size=80_000_000_000, compute_cap_major=9, compute_cap_minor=0, core_count=132)
    launch = "regs:32 static_shared:16 dynamic_shared:1024 grid:8,4,1 block:128,1,1 occ_pct:50"
    gpu.line(
        14,
        "Stream #14(Compute)",
        gpu.event("gemm", 3_500_000, 1_500_000, correlation_id=9, kernel_details=launch),
        gpu.event(
            "MemcpyD2H", 6_000_000, 250_000, memcpy_details="kind:device_to_host size:4096 dest:0 async:1", hlo=b"\x01"
        ),
        start_ns=base_ns + 5000,
    )
    gpu.line(100, "XLA Modules", gpu.event("jit_step", 3_500_000, 2_750_000, flops=1.5), start_ns=base_ns + 5000)
    task = Plane("Task Environment")
    task.own.append((6, message((1, task.stats.setdefault("profile_start_time", 1)), (3, START_NS))))
    return [gpu.message(), host.message(), task.message(), field(4, "node7")]


def make_gpu(base_ns=0):
    return b"".join(make_planes(base_ns))


def convert(opstrobe, folder, data, name="run.xplane.pb"):
    (folder / name).write_bytes(data)
    process = opstrobe("convert", name, "out.json", cwd=folder)
    assert process.returncode == 0, process.stderr
    trace = json.loads((folder / "out.json").read_text())
    rows = {entry["name"]: entry for entry in trace["traceEvents"] if entry["ph"] in "Xi"}
    for row in rows.values():
        row["start_ns"] = round(float(row["ts"]) * 1000) + trace["baseTimeNanoseconds"] - START_NS
    return trace, rows


@pytest.mark.parametrize("base_ns", [0, START_NS], ids=["times from the start", "times since 1970"])
def test_planes_of_a_gpu(opstrobe, tmp_path, base_ns):
    trace, rows = convert(opstrobe, tmp_path, make_gpu(base_ns))
    what = {name: (row["cat"], row["pid"], row["tid"], row["start_ns"], row.get("dur")) for name, row in rows.items()}
    assert what == {
        "ProfilerStep#3": ("user_annotation", 42, 1, 5000, 9),
        "train.py(12): step": ("python_function", 42, 1, 5500, 8),
        "dot.1": ("cpu_op", 42, 1, 6000, 3),
        "cuLaunchKernel": ("cuda_driver", 42, 1, 7000, 1),
        "a mark": ("user_annotation", 42, 1, 11000, None),
        "gemm": ("kernel", 1, 14, 8500, 1.5),
        "MemcpyD2H": ("gpu_memcpy", 1, 14, 11000, 0.25),
        "jit_step": ("gpu_user_annotation", 1, 100, 8500, 2.75),
    }
    gemm = rows["gemm"]["args"]
    assert (gemm["grid"], gemm["block"], gemm["registers per thread"], gemm["shared memory"]) == (
        [8, 4, 1],
        [128, 1, 1],
        32,
        1040,
    )
    assert gemm["correlation"] == rows["cuLaunchKernel"]["args"]["correlation"] == 9
    assert rows["MemcpyD2H"]["args"]["bytes"] == 4096 and "hlo" not in rows["MemcpyD2H"]["args"]
    assert rows["dot.1"]["args"]["hlo_op"] == "dot.1" and rows["jit_step"]["args"]["flops"] == 1.5
    assert rows["ProfilerStep#3"]["args"]["annotation"] == "train"
    assert trace["host_name"] == "node7"
    assert trace["deviceProperties"] == [
        {
            "id": 1,
            "name": "/device:GPU:1",
            "totalGlobalMem": 80_000_000_000,
            "computeMajor": 9,
            "computeMinor": 0,
            "numSms": 132,
        }
    ]
    table = json.loads(opstrobe("kernels", "--by-operator", "--format", "json", "run.xplane.pb", cwd=tmp_path).stdout)[
        "table"
    ]
    kernels = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert {(row["name"], row["operator"]) for row in kernels if row["name"] == "gemm"} == {("gemm", "dot.1")}


def test_operations_inside_others_on_a_tpu(opstrobe, tmp_path):
    """A loop does not count as work in addition to its body."""
    tpu = Plane("/device:TPU:0")
    tpu.events["%fusion.1 = f32[8] fusion(x)"] = (1, "fusion.1")
    tpu.line(
        2,
        "XLA Ops",
        tpu.event("while.1", 0, 9_000_000),
        tpu.event("%fusion.1 = f32[8] fusion(x)", 1_000_000, 2_000_000),
        tpu.event("copy.1", 4_000_000, 5_000_000),
        tpu.event("last", 9_000_000, 1_000_000),
        start_ns=START_NS,
    )
    tpu.line(1, "Steps", tpu.event("0", 0, 10_000_000), start_ns=START_NS)
    _, rows = convert(opstrobe, tmp_path, tpu.message())
    assert {name: (row["cat"], row["start_ns"]) for name, row in rows.items()} == {
        "while.1": ("gpu_user_annotation", 0),
        "fusion.1": ("kernel", 1000),
        "copy.1": ("kernel", 4000),
        "last": ("kernel", 9000),
        "0": ("gpu_user_annotation", 0),
    }
    assert rows["fusion.1"]["args"]["long_name"].startswith("%fusion.1 =")


def test_events_that_cannot_be_read(opstrobe, tmp_path):
    host = Plane("/host:CPU")
    host.line(
        1,
        "main",
        host.event("good", 0, 1000_000),
        message((1, 1), (5, 7)),  # a number of occurrences instead of a time
        host.event("late", (1 << 63) - 1, 10),
        message((1, 1), (2, 5000), (3, -1)),
        start_ns=START_NS,
    )
    _, rows = convert(opstrobe, tmp_path, host.message())
    assert len([row for row in rows.values() if row["cat"] == "user_annotation"]) >= 1
    shown = json.loads(opstrobe("info", "--format", "json", "run.xplane.pb", cwd=tmp_path).stdout)
    assert {each["kind"]: each["count"] for each in shown["diagnostics"]} == {"bad_time": 1, "bad_duration": 1}


def test_cut_and_changed_files(opstrobe, tmp_path):
    """A plane that is cut short has no names, so it is left out; of the first one, nothing is left."""
    parts = make_planes()
    data = b"".join(parts)
    for size in range(30, len(data) - len(parts[3]), 41):
        (tmp_path / "cut.pb").write_bytes(data[:size])
        process = opstrobe("validate", "cut.pb", cwd=tmp_path)
        if size < len(parts[0]):
            assert process.returncode == 1 and f"byte {size}: the file ends early, in its first plane" in process.stderr
        elif size not in (len(parts[0]), len(parts[0] + parts[1]), len(data) - len(parts[3])):
            assert "ends early" in process.stdout, (size, process.stderr)
    (tmp_path / "changed.pb").write_bytes(data.replace(b"\x12\x13Stream #14(Compute)", b"\x17\x13Stream #14(Compute)"))
    process = opstrobe("info", "changed.pb", cwd=tmp_path)
    assert process.returncode == 1 and "malformed XLine" in process.stderr and "byte " in process.stderr
    seed = random.Random(5)
    for _ in range(60):
        changed = bytearray(data)
        changed[seed.randrange(24, len(data))] = seed.randrange(256)
        (tmp_path / "changed.pb").write_bytes(changed)
        process = opstrobe("info", "changed.pb", cwd=tmp_path)
        assert process.returncode in (0, 1) and (process.returncode == 0 or process.stderr.startswith("opstrobe: "))
