# SPDX-License-Identifier: Apache-2.0
"""What with_stack adds to one call of a Python function and of a C function: in nanoseconds of thread CPU time, all in one
process, the variants in turn, the least of many rounds. `floor` is an empty C profile function, `clock` one that reads the clock
and records nothing."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import opstrobe

CALLS = 2_000
_SOURCE = Path(__file__).with_name("empty_hook.c")
_INCLUDE = Path(__file__).parents[1] / "include"


def _build() -> Path:
    key = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"opstrobe-bench-{os.getuid()}" / f"empty-hook-{key}.so"
    if not library.exists():
        library.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = library.with_suffix(f".{os.getpid()}")
        compiler = os.environ.get("CC", "cc")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", f"-I{_INCLUDE}", str(_SOURCE), "-o", str(fresh)], check=True
        )
        fresh.rename(library)
    return library


_library = ctypes.CDLL(str(_build()))
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
