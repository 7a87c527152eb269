# SPDX-License-Identifier: Apache-2.0
"""Compares what two profilers say a GPU did: the same kernels as often, as long within a hundredth, each with its launch.

python tests/gpu/compare.py THEIRS OURS           two trace files
python tests/gpu/compare.py --run [PROGRAM…]      runs programs.py with each profiler, on a machine with a GPU
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
SHORT_US = 5.0  # below, a hundredth is less than what two runs of one kernel differ by


def read(path: str | pathlib.Path) -> list[dict[str, Any]]:
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened:
        rows: list[dict[str, Any]] = json.load(opened)["traceEvents"]
    return rows


def work_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[float]]:
    """Durations in microseconds by category and name."""
    found = collections.defaultdict(list)
    for row in rows:
        if row.get("cat") in WORK:
            found[row["cat"], row["name"]].append(float(row["dur"]))
    return dict(found)


def unlinked(rows: list[dict[str, Any]]) -> list[str]:
    """Names of work whose call is not in the trace."""
    calls = {row["args"]["correlation"] for row in rows if row.get("cat") in CALLS and "correlation" in row["args"]}
    return [row["name"] for row in rows if row.get("cat") in WORK and row["args"].get("correlation") not in calls]


def differences(theirs: list[dict[str, Any]], ours: list[dict[str, Any]], ratio: float = 0.01) -> list[str]:
    """What is not the same, in words; empty when all is."""
    a, b = work_of(theirs), work_of(ours)
    found = [f"{key[1]}: only theirs, {len(a[key])} times" for key in a.keys() - b.keys()]
    found += [f"{key[1]}: only ours, {len(b[key])} times" for key in b.keys() - a.keys()]
    for key in a.keys() & b.keys():
        if len(a[key]) != len(b[key]):
            found.append(f"{key[1]}: {len(a[key])} times theirs, {len(b[key])} times ours")
        x, y = statistics.median(a[key]), statistics.median(b[key])
        if abs(x - y) > ratio * max(x, SHORT_US):
            found.append(f"{key[1]}: {x:.3f} us theirs, {y:.3f} us ours")
    found += [f"{name}: no launch" for name in unlinked(ours)]
    return sorted(found)


def run_program(name: str, profiler: str, trace: pathlib.Path) -> float:
    command = [sys.executable, pathlib.Path(__file__).with_name("programs.py"), name, profiler, trace]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def run(names: list[str]) -> int:
    """Each program with each profiler; what differs is printed. How many programs did."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            traces = {which: pathlib.Path(folder, f"{name}.{which}.json") for which in ("torch", "opstrobe")}
            seconds = {
                which: run_program(name, which, traces.get(which, pathlib.Path())) for which in ("none", *traces)
            }
            found = differences(read(traces["torch"]), read(traces["opstrobe"]))
            costs = ", ".join(f"{which} {seconds[which] / seconds['none'] - 1:+.1%}" for which in traces)
            print(f"{name}: {seconds['none'] * 1e3:.2f} ms a step, {costs}; {len(found)} differences", flush=True)
            print("".join(f"  {line}\n" for line in found), end="")
            bad += bool(found)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.run:
        return 1 if run(arguments.names or ["resnet", "transformer", "graph", "compiled", "copies"]) else 0
    found = differences(*map(read, arguments.names))
    print("\n".join(found) or "the same")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
