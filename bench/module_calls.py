# SPDX-License-Identifier: Apache-2.0
"""What recording adds to one call of a module that does nothing: in nanoseconds of thread CPU time, all in one process,
the variants in turn, the least of many rounds. For comparison, what people do without Opstrobe: a range around each call by
global forward hooks, and torch.profiler's stacks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

import opstrobe

CALLS = 1_000  # a round
CPU = torch.profiler.ProfilerActivity.CPU


@contextlib.contextmanager
def _hooks() -> Iterator[None]:
    """torch.profiler with a record_function around each call of a module."""
    ranges: list[Any] = []

    def enter(module: torch.nn.Module, args: Any) -> None:
        ranges.append(torch.profiler.record_function(type(module).__name__))
        ranges[-1].__enter__()

    def leave(module: torch.nn.Module, args: Any, result: Any) -> None:
        ranges.pop().__exit__(None, None, None)

    hooks = torch.nn.modules.module
    before = hooks.register_module_forward_pre_hook(enter)
    after = hooks.register_module_forward_hook(leave, always_call=True)
    try:
        with torch.profiler.profile(activities=[CPU]):
            yield
    finally:
        before.remove()
        after.remove()


VARIANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "base": contextlib.nullcontext,
    "opstrobe, with_modules": lambda: opstrobe.profile(with_modules=True),
    "opstrobe, with_stack": lambda: opstrobe.profile(with_stack=True),
    "torch, forward hooks": _hooks,
    "torch, with_stack": lambda: torch.profiler.profile(activities=[CPU], with_stack=True),
}


def _round(module: torch.nn.Module, x: torch.Tensor) -> float:
    """Nanoseconds a call."""
    calls = range(CALLS)
    begin = time.thread_time_ns()
    for _ in calls:
        module(x)
    return (time.thread_time_ns() - begin) / CALLS


def module_costs(rounds: int) -> dict[str, float]:
    """Nanoseconds that each variant adds to one call of `torch.nn.Identity`; `base` is the call itself."""
    module, x = torch.nn.Identity(), torch.ones(4)
    best = dict.fromkeys(VARIANTS, float("inf"))
    for _ in range(rounds):
        for name, profiler in VARIANTS.items():
            with profiler():
                _round(module, x)
                best[name] = min(best[name], _round(module, x))
    base = best["base"]
    return {name: ns if name == "base" else ns - base for name, ns in best.items()}
