# SPDX-License-Identifier: Apache-2.0
"""What with_stack adds to one call of a Python function and of a C function: in nanoseconds of thread CPU time, all in one
process, the variants in turn, the least of many rounds. `floor` is an empty C profile function, `clock` one that reads the clock
and records nothing."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from library import load

import opstrobe

CALLS = 2_000
_library = load("empty_hook.c", os.environ.get("CC", "cc"))
_set_profile = ctypes.pythonapi.PyEval_SetProfile
_set_profile.argtypes = [ctypes.c_void_p, ctypes.py_object]
_set_profile.restype = None


@contextlib.contextmanager
def empty_hook(*, clock: bool = False) -> Iterator[None]:
    """A profile function that records nothing, on this thread; with `clock` it reads the clock."""
    _set_profile(ctypes.cast(_library.clock_hook if clock else _library.empty_hook, ctypes.c_void_p), None)
    try:
        yield
    finally:
        _set_profile(None, None)


VARIANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "base": contextlib.nullcontext,
    "floor": empty_hook,
    "clock": lambda: empty_hook(clock=True),
    "opstrobe": lambda: opstrobe.profile(with_stack=True),
    "torch": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True),
}


def _function() -> None:
    pass


def _empty_loop() -> float:
    calls = range(CALLS)
    begin = time.thread_time_ns()
    for _ in calls:
        pass
    return (time.thread_time_ns() - begin) / CALLS


def _python_calls() -> float:
    calls, function = range(CALLS), _function
    begin = time.thread_time_ns()
    for _ in calls:
        function()
    return (time.thread_time_ns() - begin) / CALLS


def _c_calls() -> float:
    calls, function = range(CALLS), (1).__sizeof__
    begin = time.thread_time_ns()
    for _ in calls:
        function()
    return (time.thread_time_ns() - begin) / CALLS


def python_costs(rounds: int) -> dict[str, dict[str, float]]:
    """By kind of function the nanoseconds that each variant adds to a call; `base` is the call itself."""
    kinds = {"Python function": _python_calls, "C function": _c_calls}
    best = {kind: dict.fromkeys(VARIANTS, float("inf")) for kind in kinds}
    for _ in range(rounds):
        for name, profiler in VARIANTS.items():
            with profiler():
                for kind, run in kinds.items():
                    run()  # the first calls of a session fetch memory and meet functions
                    best[kind][name] = min(best[kind][name], run())
    loop = min(_empty_loop() for _ in range(20))
    for costs in best.values():
        base = costs["base"]
        for name in costs:
            costs[name] -= loop if name == "base" else base
    return best


_AFTERWARDS = """
import json, sys, time
import opstrobe
from afterwards import _Peak
def f(): pass
def run(n):
    for _ in range(n): f()
with opstrobe.profile(with_stack=True): run(1000)
with _Peak() as peak:
    p = opstrobe.profile(with_stack=True)
    p.start(); run(int(sys.argv[1]))
    begin = time.thread_time_ns()
    p.stop()
    stop_ns = time.thread_time_ns() - begin
assert p.profiler.trace.lost == 0
print(json.dumps({"stop_ns": stop_ns, "bytes": peak.growth}))
"""


def after_calls(count: int) -> dict[str, float]:
    """Time of the stop and peak of memory for each of `count` calls, in a separate process."""
    command = [sys.executable, "-c", _AFTERWARDS, str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
    figures = json.loads(done.stdout)
    return {"stop_ns": figures["stop_ns"] / count, "bytes": figures["bytes"] / count}
