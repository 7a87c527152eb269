# SPDX-License-Identifier: Apache-2.0
"""What recording adds to one operator and one range: in nanoseconds of thread CPU time, all in one process, the
variants in turn, of many rounds a fast one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch
from floor import empty_callbacks

import opstrobe

CALLS = 100  # of the operator, a sample: short, so that some are undisturbed on a busy machine too
SAMPLES = 20  # a round


def _torch_profiler(**options: Any) -> contextlib.AbstractContextManager[Any]:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


def _opstrobe(**options: Any) -> contextlib.AbstractContextManager[Any]:
    return opstrobe.profile(activities=[opstrobe.ProfilerActivity.CPU], **options)


VARIANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "base": contextlib.nullcontext,
    "floor": empty_callbacks,
    "opstrobe": _opstrobe,
    "torch": _torch_profiler,
    "floor, inputs": lambda: empty_callbacks(inputs=True),
    "opstrobe, shapes": lambda: _opstrobe(record_shapes=True),
    "torch, shapes": lambda: _torch_profiler(record_shapes=True),
    "opstrobe, memory": lambda: _opstrobe(profile_memory=True),
    "torch, memory": lambda: _torch_profiler(profile_memory=True),
}


def _round(a: torch.Tensor, b: torch.Tensor) -> float:
    """Nanoseconds a call, of the best sample."""
    add = torch.add
    calls = range(CALLS)
    best = float("inf")
    for _ in range(SAMPLES):
        begin = time.thread_time_ns()
        for _ in calls:
            add(a, b)
        best = min(best, time.thread_time_ns() - begin)
    return best / CALLS


def operator_costs(rounds: int) -> dict[str, float]:
    """Nanoseconds that each variant adds to one `torch.add` of four floats; `base` is the operator itself. Of the rounds a
    fast one counts, but not the fastest: a processor that was quick for a moment would tell for one variant alone."""
    torch.set_num_threads(1)
    a, b = torch.ones(4), torch.ones(4)
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(rounds):
        for name, profiler in VARIANTS.items():
            with profiler():
                _round(a, b)  # the first operators of a session fetch memory and meet names
                times[name].append(_round(a, b))
    fast = {name: sorted(all_rounds)[rounds // 10] for name, all_rounds in times.items()}
    return {name: ns if name == "base" else ns - fast["base"] for name, ns in fast.items()}


def _ranges(enter: Callable[[str], contextlib.AbstractContextManager[Any]], calls: int) -> float:
    begin = time.thread_time_ns()
    for _ in range(calls):
        with enter("a range"):
            pass
    return (time.thread_time_ns() - begin) / calls


def _empty_loop(calls: int) -> float:
    begin = time.thread_time_ns()
    for _ in range(calls):
        pass
    return (time.thread_time_ns() - begin) / calls


def range_costs(rounds: int) -> dict[str, float]:
    """Nanoseconds of `with record_function("…"): pass`, with no profiler running and while one records."""
    best: dict[str, float] = {}

    def keep(name: str, ns: float) -> None:
        best[name] = min(best.get(name, float("inf")), ns)

    for _ in range(rounds):
        loop = _empty_loop(20_000)
        keep("opstrobe, idle", _ranges(opstrobe.record_function, 20_000) - loop)
        keep("torch, idle", _ranges(torch.profiler.record_function, 2_000) - loop)
        with _opstrobe():
            keep("opstrobe, recording", _ranges(opstrobe.record_function, 5_000) - loop)
        with _torch_profiler():
            keep("torch, recording", _ranges(torch.profiler.record_function, 1_000) - loop)
    return best
