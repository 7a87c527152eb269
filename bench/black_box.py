# SPDX-License-Identifier: Apache-2.0
"""What the black box adds to a step of five programs.

Blocks of steps with and without it alternate within one process, so that what else the machine does falls on both. The figures are
CPU time of the process, the recorder's threads included, as a share of a step without the black box (for programs that wait: of its
wall-clock time without waits for a processor). A block is measured for BLOCK_SECONDS at least, because the threads work once a second, and after WARM_UP_SECONDS,
because a black box that starts looks up the names of everything.

    bench/black_box.py ROUNDS [--settled SECONDS | --detail DETAIL[:GROUP]] [--slices] [PROGRAM…]

All detail is recorded. With --settled, the program first runs for SECONDS with the default budget, which selects the detail.

With --slices, for tiny steps, the figure is the sum of two: of the thread of the steps, the lower quartile of the CPU time of slices of 64
steps, which other programs disturb less; and of the other threads, which are the recorder's, all their CPU time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import opstrobe
from opstrobe import _core

WARM_UP = 3  # steps of a block that do not count, at least
WARM_UP_SECONDS = 0.5
BLOCK_SECONDS = 1.5
SLICE_STEPS = 64
SLICED_WARM_UP_SECONDS = 0.3
SLICED_BLOCK_SECONDS = 0.4


def resnet18() -> Callable[[], Any]:
    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            same = inputs == outputs and stride == 1
            self.down = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(out)) + self.down(x))

    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [
        Block(inputs, outputs, 2 if outputs > inputs else 1)
        for inputs, outputs in zip(widths[:-1], widths[1:], strict=True)
    ]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return _training(model, torch.randn(4, 3, 64, 64), torch.randint(10, (4,)))


def transformer() -> Callable[[], Any]:
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 4), nn.Linear(128, 1000))
    tokens = torch.randint(1000, (8, 64))
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()

    return step


def small_mlp() -> Callable[[], Any]:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return _training(model, torch.randn(16, 64), torch.randint(10, (16,)))


def generation() -> Callable[[], Any]:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)
    model = nn.Sequential(
        nn.Embedding(1000, 256), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(256, 1000)
    )
    model.eval()
    tokens = torch.randint(1000, (1, 32))

    @torch.no_grad()
    def step() -> None:
        nonlocal tokens
        next_token = model(tokens)[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens[:, 1:], next_token], 1)

    return step


class _Slow(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.randn(256)


def loader_bound() -> Callable[[], Any]:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(torch.utils.data.DataLoader(_Slow(), batch_size=4))

    def step() -> None:
        optimizer.zero_grad()
        model(next(batches)).square().mean().backward()
        optimizer.step()

    return step


def _training(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[], Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step


PROGRAMS: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {  # and steps in a block
    "ResNet-18 training": (resnet18, 8),
    "transformer training": (transformer, 10),
    "small MLP, tiny steps": (small_mlp, 400),
    "generation loop": (generation, 60),
    "loader-bound training": (loader_bound, 30),
}


def _block(step: Callable[[], Any], steps: int) -> tuple[float, float]:
    """The CPU time of a step, and its wall-clock time without that in which this thread waited for a processor, in ns."""
    _steps_of(step, WARM_UP, WARM_UP_SECONDS)
    cpu, wall = time.process_time_ns(), time.perf_counter_ns() - _waited_ns()
    done = _steps_of(step, steps, BLOCK_SECONDS)
    return (time.process_time_ns() - cpu) / done, (time.perf_counter_ns() - _waited_ns() - wall) / done


def _sliced_block(step: Callable[[], Any]) -> tuple[float, float]:
    """As _block, but of the thread of the steps the lower quartile of slices."""
    _steps_of(step, WARM_UP, SLICED_WARM_UP_SECONDS)
    slices = []
    process, thread = time.process_time_ns(), time.thread_time_ns()
    end = time.perf_counter() + SLICED_BLOCK_SECONDS
    while time.perf_counter() < end:
        begin = time.thread_time_ns()
        for _ in range(SLICE_STEPS):
            step()
        slices.append((time.thread_time_ns() - begin) / SLICE_STEPS)
    others = (time.process_time_ns() - process) - (time.thread_time_ns() - thread)
    own = statistics.quantiles(slices, n=4)[0]
    return own + others / (len(slices) * SLICE_STEPS), own


def _waited_ns() -> int:
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1])


def _steps_of(step: Callable[[], Any], steps: int, seconds: float) -> int:
    """Runs multiples of `steps` until `seconds` have passed. Returns the number of steps."""
    done, end = 0, time.perf_counter() + seconds
    while not done or time.perf_counter() < end:
        for _ in range(steps):
            step()
        done += steps
    return done


def settled_detail(name: str, seconds: float) -> str:
    """The detail at which the default budget arrives; "steps:8" if eight steps are recorded as one."""
    torch.set_num_threads(1)
    step = PROGRAMS[name][0]()
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        opstrobe.black_box(spill=folder, incidents=folder) as box,
    ):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            step()
        # A program without steps has no figures.
        measured = json.loads(box.snapshot(seconds=0.1).metadata.get("black_box", "{}"))
        detail: str = measured.get("detail", "operators")
        return detail if _core.watch_group() == 1 else f"{detail}:{_core.watch_group()}"


def black_box_cost(
    name: str, rounds: int, detail: str | None = None, *, slices: bool = False, **options: Any
) -> dict[str, float]:
    """What the black box adds to a step (`share`, of it), its 95 % interval, and the step without it in ns."""
    make, steps = PROGRAMS[name]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step = make()

    def block() -> tuple[float, float]:
        return _sliced_block(step) if slices else _block(step, steps)

    added, plain_cpu, plain_wall = [], [], []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        box = opstrobe.black_box(spill=folder, incidents=folder, budget=0, **options)
        if detail is not None:
            box.budget = -1  # no shadow steps, which would end with all detail
        block()
        for number in range(rounds):
            figures: dict[bool, tuple[float, float]] = {}
            for recorded in (False, True) if number % 2 else (True, False):
                if recorded:
                    with box:
                        if detail is not None:
                            level, _, group = detail.partition(":")
                            _core.watch_set_detail(level, int(group or 1))
                            box._each_second()
                        figures[recorded] = block()
                else:
                    figures[recorded] = block()
            added.append(figures[True][0] - figures[False][0])
            plain_cpu.append(figures[False][0])
            plain_wall.append(figures[False][1])
    base = max(statistics.median(plain_cpu), min(plain_wall))
    added.sort()
    away = int(0.98 * rounds**0.5)
    low, high = added[max(0, rounds // 2 - away)], added[min(rounds - 1, (rounds - 1) // 2 + away)]
    return {"share": statistics.median(added) / base, "low": low / base, "high": high / base, "base": base}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int)
    parser.add_argument("--settled", type=float)
    parser.add_argument("--detail")
    parser.add_argument("--slices", action="store_true")
    parser.add_argument("programs", nargs="*")
    given = parser.parse_intermixed_args()
    for program in given.programs or PROGRAMS:
        detail = given.detail if given.settled is None else settled_detail(program, given.settled)
        cost = black_box_cost(program, given.rounds, detail, slices=given.slices)
        print(
            f"{program:<24} {cost['base'] / 1e6:8.3f} ms a step  {100 * cost['share']:5.2f} % "
            f"({100 * cost['low']:.2f} to {100 * cost['high']:.2f} %)  {detail or 'operators'}",
            flush=True,
        )
