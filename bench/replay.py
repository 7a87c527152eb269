# SPDX-License-Identifier: Apache-2.0
"""How far `opstrobe whatif` is from the truth: `python bench/replay.py [NAME…]`.

Records programs of tests/diagnosis, and some with data loaders, replays them unchanged and without what is planted, then
measures what they gain without it, unprofiled: the two versions take turns. Gains are shares of a step, so that other work on
the machine affects both alike, and the quietest of three recordings counts. `--ranks FOLDER` adds recordings of programs on two
ranks over Gloo, which tests/diagnosis/ranks.py makes.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

import opstrobe

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "diagnosis"))
import suite  # noqa: E402

# Programs whose fix is to leave the planted lines out.
REMOVED = (
    "checkpoint", "encode_each_token", "gc_collect", "log_file", "logger", "numpy_metric", "print_tensor", "repeated_work",
    "sleep",
)  # fmt: skip
OTHERS = ("healthy_loader", "healthy_two_workers", "healthy_server", "loader_restarts", "thread_oversubscription")
# Milliseconds that a batch and a step take.
LOADERS = {"loader 8 + 2 ms": (8, 2), "loader 4 + 12 ms": (4, 12), "loader 10 + 8 ms": (10, 8)}
WORKERS = 2


class Slow(Dataset):
    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.milliseconds / 1e3)
        return torch.ones(4)


def loader_steps(batch_ms: float, step_ms: float, workers: int):
    batches = iter(DataLoader(Slow(batch_ms), batch_size=1, num_workers=workers, persistent_workers=workers > 0))

    def step() -> None:
        next(batches)
        time.sleep(step_ms / 1e3)

    return step


def record_step(step) -> opstrobe.profile:
    schedule = opstrobe.schedule(wait=0, warmup=2, active=16, repeat=1)
    with opstrobe.profile(activities=[opstrobe.ProfilerActivity.CPU], schedule=schedule, with_stack=True) as profile:
        for _ in range(18):
            step()
            profile.step()
    return profile


def quietest(record) -> opstrobe.profile:
    """Of three recordings, the one with the shortest median step: other programs disturb it least."""
    return min((record() for _ in range(3)), key=lambda profile: profile.whatif()[0]["step_us"])


def measure_step(step, rounds: int = 40) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[4:])


def print_row(
    name: str, rows: list[dict[str, Any]], measured_ms: tuple[float, float] | None = None
) -> tuple[float, float | None]:
    error = rows[1]["replay_error_percent"]
    line = f"| {name} | {rows[0]['step_us'] / 1e3:.2f} | {error:.2f} % |"
    miss = None
    if measured_ms:
        last, gain = rows[-1], 100 * (1 - measured_ms[1] / measured_ms[0])
        saved, low, high = (
            100 * last[name] / rows[1]["step_us"] for name in ("saved_us", "saved_low_us", "saved_high_us")
        )
        miss = abs(saved - gain) / gain if gain > 0 else float("nan")
        line += f" {saved:.1f} % ({low:.1f} to {high:.1f}) | {gain:.1f} % | {100 * miss:.0f} % |"
    else:
        line += " | | |"
    print(line, flush=True)
    return error, miss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument(
        "--ranks", metavar="FOLDER", help="folder with recordings of tests/diagnosis/ranks.py: NAME/rank-0.json"
    )
    options = parser.parse_args()
    found = []
    print("| program | step, ms | replay error | predicted gain | measured gain | apart |\n|---|---|---|---|---|---|")
    for program in suite.programs():
        if program.name not in (options.names or REMOVED + OTHERS):
            continue
        trace = quietest(lambda program=program: suite.record(program))
        if program.name in REMOVED:
            lines = [f"{program.path.name}:{line}" for line in program.lines]
            found.append(print_row(program.name, trace.whatif(drop=lines), suite.measure(program)))
        else:
            found.append(print_row(program.name, trace.whatif()))
    for name, (batch_ms, step_ms) in LOADERS.items():
        if options.names:
            break
        trace = quietest(lambda times=(batch_ms, step_ms): record_step(loader_steps(*times, 0)))
        rows = trace.whatif(workers=WORKERS)
        times = [measure_step(loader_steps(batch_ms, step_ms, workers)) for workers in (0, WORKERS)]
        found.append(print_row(f"{name}, {WORKERS} workers", rows, (times[0], times[1])))
    for path in sorted(pathlib.Path(options.ranks).glob("*/rank-0.json")) if options.ranks else []:
        found.append(print_row(f"{path.parent.name} (Gloo)", opstrobe.read(path).whatif()))
    errors, misses = [error for error, _ in found], sorted(miss for _, miss in found if miss is not None)
    print(
        f"\n{len(errors)} programs: replay error {statistics.mean(errors):.2f} % on average, {max(errors):.2f} % at most"
    )
    print(f"{len(misses)} gains: {statistics.median(misses):.0%} apart in the median, {misses[-1]:.0%} at most")


if __name__ == "__main__":
    main()
