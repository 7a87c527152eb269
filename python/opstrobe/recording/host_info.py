# SPDX-License-Identifier: Apache-2.0
"""Host information: the processors and the memory of the machine, and how long each step was ready to run while another
program had the processor. With it, advice can distinguish problems of the program from a busy machine."""

from __future__ import annotations

import json
import mmap
import os
import resource
import sys
import time

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Limit on the steps, each of which is a row of five numbers. More are not required.
_STEPS_MAX = 4096
_CHILDREN_MAX = 64
# Enough for a clock with a resolution of microseconds, and quick to touch.
_PAGES = 32
_ROUNDS = 4


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, 4096)
    except OSError:
        return b""
    finally:
        os.close(file)


def schedule_of(path: str) -> tuple[int, int]:
    """Nanoseconds that a thread ran on a processor, and waited for one."""
    fields = _read(path).split()
    return (int(fields[0]), int(fields[1])) if len(fields) >= 2 else (0, 0)


def _children() -> list[int]:
    """The processes that multiprocessing started, including a loader's workers."""
    process: Any = sys.modules.get("multiprocessing.process")
    children = getattr(process, "_children", ()) if process is not None else ()
    return [child.pid for child in list(children)[:_CHILDREN_MAX] if child.pid is not None]


def _faults() -> int:
    """The number of memory pages that this thread touched for the first time, so that the kernel had to find and zero
    them."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


class StepClock:
    """Reads at the end of each step how the kernel scheduled this thread and the child processes, and the number of
    page faults."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int, int]] = []
        self._begin: tuple[int, int] | None = None
        self._faults = 0
        self._children: dict[int, int] = {}

    def begin(self) -> None:
        self._children = {pid: schedule_of(f"/proc/{pid}/schedstat")[1] for pid in _children()}
        self._begin = schedule_of("/proc/thread-self/schedstat")
        self._faults = _faults()

    def end(self, number: int) -> None:
        if self._begin is None or len(self.steps) >= _STEPS_MAX:
            return
        faults = _faults() - self._faults
        ran, waited = schedule_of("/proc/thread-self/schedstat")
        children = 0
        for pid, before in self._children.items():
            children = max(children, schedule_of(f"/proc/{pid}/schedstat")[1] - before)
        self.steps.append((number, ran - self._begin[0], waited - self._begin[1], children, faults))
        self._begin = None


def processors() -> float:
    """The number of processors that this process may use at a time. In a container it may be a fraction."""
    count = float(len(os.sched_getaffinity(0)))
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit() and int(quota[1]):
        count = min(count, int(quota[0]) / int(quota[1]))
    return count


def _memory() -> tuple[int, int]:
    """Bytes that this process may use, and its maximum so far; 0: unknown."""
    most = _read("/proc/self/status").partition(b"VmHWM:")[2].split(maxsplit=1)
    return _core.memory_limit(), int(most[0]) * 1024 if most else 0


def _page_ns() -> float:
    """The time to touch a page of memory for the first time, which causes a fault, and the kernel zeroes the page.
    Measured once, because it takes as long as the rest of a stop after thousands of calls."""
    best = float("inf")
    with mmap.mmap(-1, _ROUNDS * _PAGES * mmap.PAGESIZE) as memory:
        for first in range(0, len(memory), _PAGES * mmap.PAGESIZE):
            times = []
            for _ in range(2):
                begin = time.thread_time_ns()
                for at in range(first, first + _PAGES * mmap.PAGESIZE, mmap.PAGESIZE):
                    memory[at] = 1
                times.append(time.thread_time_ns() - begin)
            best = min(best, max(0, times[0] - times[1]) / _PAGES)
    return best


def make_json(clock: StepClock) -> str:
    """The metadata `machine` of a trace, as JSON."""
    torch: Any = sys.modules.get("torch")
    limit, most = _memory()
    return json.dumps(
        {
            "processors": processors(),
            "page_ns": _page_ns() if clock.steps else 0,  # the cost of a page fault, to weight those of steps
            "threads": torch.get_num_threads() if torch is not None else 0,
            "memory_limit_bytes": limit,
            "memory_peak_bytes": most,
            "steps": clock.steps,
        },
        separators=(",", ":"),  # identical to the output for a file that is read and written again
    )
