# SPDX-License-Identifier: Apache-2.0
"""What recording adds to one operator and one range: in nanoseconds of thread CPU time, all in one process, the
variants in turn, of many rounds a fast one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from floor import add_tensors, empty_callbacks

import opstrobe


def _torch_profiler(**options: Any) -> contextlib.AbstractContextManager[Any]:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


def _opstrobe(**options: Any) -> contextlib.AbstractContextManager[Any]:
    return opstrobe.profile(activities=[opstrobe.ProfilerActivity.CPU], **options)


VARIANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "base": contextlib.nullcontext,
    "floor": empty_callbacks,
    "clock": lambda: empty_callbacks(clock=True),
    "opstrobe": _opstrobe,
    "torch": _torch_profiler,
    "floor, inputs": lambda: empty_callbacks(inputs=True),
    "clock, inputs": lambda: empty_callbacks(inputs=True, clock=True),
    "opstrobe, shapes": lambda: _opstrobe(record_shapes=True),
    "torch, shapes": lambda: _torch_profiler(record_shapes=True),
    "opstrobe, memory": lambda: _opstrobe(profile_memory=True),
    "torch, memory": lambda: _torch_profiler(profile_memory=True),
}


def _add_from_python(calls: int) -> None:
    a, b, add = *_TENSORS, torch.add
    for _ in range(calls):
        add(a, b)


_TENSORS = torch.ones(4), torch.ones(4)


class Loop(NamedTuple):
    """A loop of `torch.add` of four floats."""

    run: Callable[[int], None]
    calls: int  # of the operator, a sample
    samples: int  # a round


LOOPS = {
    # Short, so that some samples are undisturbed on a busy machine too.
    "from Python": Loop(_add_from_python, calls=100, samples=20),
    # Long, so that the records fill many blocks.
    "from C++, 5,000 in a row": Loop(add_tensors, calls=5000, samples=5),
}


def _best_sample(loop: Loop) -> float:
    """Nanoseconds a call."""
    best = float("inf")
    for _ in range(loop.samples):
        begin = time.thread_time_ns()
        loop.run(loop.calls)
        best = min(best, time.thread_time_ns() - begin)
    return best / loop.calls


def operator_costs(rounds: int, loop: Loop) -> dict[str, float]:
    """Nanoseconds that each variant adds to one operator; `base` is the operator itself. Of the rounds a fast one counts, but
    not the fastest: a processor that was quick for a moment would favour one variant alone."""
    torch.set_num_threads(1)
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(rounds):
        for name, profiler in VARIANTS.items():
            with profiler():
                _best_sample(loop)  # the first operators of a session allocate memory and intern names
                times[name].append(_best_sample(loop))
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
