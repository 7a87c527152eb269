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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A step is a row of five numbers; a recording of more steps has enough of them.
_STEPS_MAX = 4096
_CHILDREN_MAX = 64
# Enough of them for a clock that ticks in microseconds, and next to no time.
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
    """Nanoseconds on a processor, and waiting for one, of a thread."""
    fields = _read(path).split()
    return (int(fields[0]), int(fields[1])) if len(fields) >= 2 else (0, 0)


def _children() -> list[int]:
    """The processes that multiprocessing started, a loader's workers among them."""
    process: Any = sys.modules.get("multiprocessing.process")
    children = getattr(process, "_children", ()) if process is not None else ()
    return [child.pid for child in list(children)[:_CHILDREN_MAX] if child.pid is not None]


def _faults() -> int:
    """Pages of memory that this thread has touched for the first time, so that the kernel had to find and zero them."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


class StepClock:
    """Reads at the ends of steps how the kernel scheduled this thread and the children, and the pages that it faulted in."""

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
    """Processors that this process may use at a time: a container may have a part of one."""
    count = float(len(os.sched_getaffinity(0)))
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit() and int(quota[1]):
        count = min(count, int(quota[0]) / int(quota[1]))
    return count


def _memory() -> tuple[int, int]:
    """Bytes that this process may have, and the most that it had; 0 unknown."""
    limit = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
    allowed = _read("/sys/fs/cgroup/memory.max").strip()
    if allowed.isdigit():
        limit = min(limit, int(allowed))
    most = _read("/proc/self/status").partition(b"VmHWM:")[2].split(maxsplit=1)
    return limit, int(most[0]) * 1024 if most else 0


def _page_ns() -> float:
    """What it takes to touch a page of memory for the first time: a fault, and the kernel zeroes it. To ask takes as long as the
    rest of a stop after thousands of calls."""
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
            "page_ns": _page_ns() if clock.steps else 0,  # what steps' faults are weighed with
            "threads": torch.get_num_threads() if torch is not None else 0,
            "memory_limit_bytes": limit,
            "memory_peak_bytes": most,
            "steps": clock.steps,
        },
        separators=(",", ":"),  # as a file of it that is read and written again has it
    )
