# SPDX-License-Identifier: Apache-2.0
"""All options at once (shapes, memory, stacks, modules, FLOPs): what they add to a training step, and what stop() and
events() take after a program of many Python calls.

Run as a program it does the second for one profiler, in a separate process, and prints one JSON object; times are thread
CPU time:

    python bench/all_options.py opstrobe|torch CALLS
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from afterwards import _Peak, _training_step

CALLS_AN_OPERATOR = 100
STEPS = 5  # of training, a round


def _profiler(which: str, **options: bool) -> contextlib.AbstractContextManager[Any]:
    if which == "torch":
        import torch.profiler as module
    else:
        import opstrobe as module  # type: ignore[no-redef]
    options = options or dict.fromkeys(
        ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops"), True
    )
    return module.profile(activities=[module.ProfilerActivity.CPU], **options)


def _step_time(step: Any) -> float:
    """Microseconds of the best of a few steps."""
    best = float("inf")
    for _ in range(STEPS):
        begin = time.thread_time_ns()
        step()
        best = min(best, time.thread_time_ns() - begin)
    return best / 1000


@contextlib.contextmanager
def _empty_callbacks(*, clock: bool = False) -> Iterator[None]:
    """Callbacks for operators, with their inputs, and for calls, that record nothing; with `clock` each reads the clock."""
    from floor import empty_callbacks
    from python_calls import empty_hook

    with empty_callbacks(inputs=True, clock=clock), empty_hook(clock=clock):
        yield


def step_costs(rounds: int) -> dict[str, float]:
    """Microseconds of one training step without a profiler (`base`), and what each profiler adds to it with all options;
    `floor` are empty callbacks, `clock` those that read the clock. The variants in turn; of the rounds a fast one counts, but not the fastest."""
    step = _training_step()
    variants: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
        "base": contextlib.nullcontext,
        "floor": _empty_callbacks,
        "clock": lambda: _empty_callbacks(clock=True),
        "opstrobe": lambda: _profiler("opstrobe"),
        "torch": lambda: _profiler("torch"),
    }
    times: dict[str, list[float]] = {which: [] for which in variants}
    for _ in range(rounds):
        for which, all_rounds in times.items():
            with variants[which]():
                step()
                all_rounds.append(_step_time(step))
    fast = {which: sorted(all_rounds)[rounds // 10] for which, all_rounds in times.items()}
    return {which: us if which == "base" else us - fast["base"] for which, us in fast.items()}


def _leaf(value: int) -> int:
    return value


def _program(calls: int) -> None:
    import torch

    x = torch.ones(4)
    for _ in range(calls // CALLS_AN_OPERATOR):
        for i in range(CALLS_AN_OPERATOR):
            _leaf(i)
        x + x


def _measure(which: str, calls: int) -> dict[str, float]:
    import torch  # noqa: F401  (before the profile that is to record it)

    with _profiler(which) as profiler:
        _program(1000)
    len(profiler.events())
    with _Peak() as peak:
        profiler = _profiler(which)
        profiler.start()
        _program(calls)
        begin = time.thread_time()
        profiler.stop()
        stopped = time.thread_time()
        count = len(profiler.events())
        ended = time.thread_time()
    return {
        "calls": calls,
        "events": count,
        "stop": stopped - begin,
        "events()": ended - stopped,
        "peak_bytes": peak.growth,
    }


def measure(which: str, calls: int) -> dict[str, float]:
    """CPU seconds of stop() and events() after about that many Python calls, and the memory of both."""
    done = subprocess.run([sys.executable, __file__, which, str(calls)], check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
