# SPDX-License-Identifier: Apache-2.0
"""Samples counters of a GPU's hardware while it idles, works and idles, and checks whether the trace is consistent: kernels are
there although counters are sampled, and multiprocessors are active where they lie and nowhere else. That is only so if samples and
kernels are on one clock.

    python tests/gpu/sampling.py [TRACE]     on a machine with a GPU; TRACE is read instead of recording
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from typing import Any

IDLE_S = 0.5
MATMULS = 200
MARGIN_US = 5000.0  # around the work, where a sample may be of both
COUNTERS = ("SM Active (%)", "DRAM BW (%)")


def findings(rows: list[dict[str, Any]], interval_us: float = 1000.0) -> list[str]:
    """What does not agree, in words; empty when all does."""
    kernels = [row for row in rows if row.get("cat") == "kernel"]
    if len(kernels) < MATMULS:
        return [f"{len(kernels)} kernels of {MATMULS} that were launched"]
    begin = min(row["ts"] for row in kernels)
    end = max(row["ts"] + row["dur"] for row in kernels)
    found = []
    for name in COUNTERS:
        samples = [(row["ts"], float(row["args"]["value"])) for row in rows if row["ph"] == "C" and row["name"] == name]
        busy = [value for ts, value in samples if begin + MARGIN_US <= ts <= end - MARGIN_US]
        idle = [value for ts, value in samples if ts < begin - MARGIN_US or ts > end + MARGIN_US]
        expected = (end - begin - 2 * MARGIN_US) / interval_us
        if not idle or abs(len(busy) - expected) > 0.1 * expected + 2:
            found.append(f"{name}: {len(busy)} samples of some {expected:.0f} in the work, {len(idle)} outside")
            continue
        print(
            f"{name}: {statistics.mean(busy):.1f} in the work, {statistics.mean(idle):.1f} outside, {len(samples)} samples"
        )
        if name == COUNTERS[0] and not statistics.mean(busy) > 50 > 10 > statistics.mean(idle):
            found.append(f"{name}: not where the kernels are")
    return found


def record(path: str) -> None:
    import torch

    from opstrobe import PerformanceMetricsConfig, ProfilerActivity, ProfilerActivityConfig, profile

    metrics = PerformanceMetricsConfig(
        [
            "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        ]
    )
    matrix = torch.randn(4096, 4096, device="cuda")
    torch.mm(matrix, matrix)
    torch.cuda.synchronize()
    config = ProfilerActivityConfig(profiler_configs=[metrics])
    with profile(activities=[ProfilerActivity.CPU, {ProfilerActivity.CUDA: config}]) as prof:
        time.sleep(IDLE_S)
        for _ in range(MATMULS):
            torch.mm(matrix, matrix)
        torch.cuda.synchronize()
        time.sleep(IDLE_S)
    prof.export_chrome_trace(path)


def main() -> int:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        path = sys.argv[1] if len(sys.argv) > 1 else file.name
        if len(sys.argv) <= 1:
            record(path)
        with open(path) as opened:
            found = findings(json.load(opened)["traceEvents"])
    print("\n".join(found) or "kernels and samples agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
