# SPDX-License-Identifier: Apache-2.0
"""Host information: the processors and the memory of the machine, how long each step was ready to run while another
thread had the processor, and how much of those other threads belongs to the program. With it, advice can distinguish
problems of the program from a busy machine."""

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
    from collections.abc import Iterable
    from typing import Any

# Limit on the steps, each of which is a row of five numbers. More are not required.
_STEPS_MAX = 4096
_CHILDREN_MAX = 64
# The clocks of other processes advance by 10 ms. Reading them takes some tens of microseconds.
_READ_EVERY_S = 0.25
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Enough for a clock with a resolution of microseconds, and quick to touch.
_PAGES = 32
_ROUNDS = 4


def _read(path: str, size: int = 4096) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, size)
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


def _children_ns(pids: Iterable[int]) -> int:
    """CPU time of child processes: of those that live, and of those that have ended."""
    ended = os.times()
    ns = int((ended.children_user + ended.children_system) * 1e9)
    for pid in pids:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()  # the name before it may contain spaces
        ns += sum(int(field) for field in fields[11:15]) * _TICK_NS
    return ns


def _busy_ns() -> int:
    """CPU time of all programs on the processors that this process may use."""
    allowed = {b"cpu%d" % number for number in os.sched_getaffinity(0)}
    busy = 0
    for line in _read("/proc/stat", 1 << 20).splitlines():
        fields = line.split()
        if fields and fields[0] in allowed:
            user, nice, system, _idle, _io_wait, interrupt, soft_interrupt = map(int, fields[1:8])
            busy += user + nice + system + interrupt + soft_interrupt
    return busy * _TICK_NS


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
        self._first: tuple[int, int, int, int] | None = None
        self._last: tuple[int, int, int, int] | None = None
        self._read_at = 0.0

    def begin(self) -> None:
        self._children = {pid: schedule_of(f"/proc/{pid}/schedstat")[1] for pid in _children()}
        if self._children and self._first is None:
            self._first = self._read_occupancy()
        self._begin = schedule_of("/proc/thread-self/schedstat")
        self._faults = _faults()

    def _read_occupancy(self) -> tuple[int, int, int, int]:
        """CPU time in nanoseconds: of the calling thread, of the other threads of this process, of the processes that
        multiprocessing started, and of everything on the processors that this process may use."""
        self._read_at = time.monotonic()
        thread_ns = schedule_of("/proc/thread-self/schedstat")[0]
        return thread_ns, time.process_time_ns() - thread_ns, _children_ns(self._children), _busy_ns()

    def shares(self) -> tuple[float, float]:
        """The shares of the other threads of this process and of child processes in the CPU time of all threads except
        the one of the steps, while there were steps and child processes. 0: none, or unknown."""
        if self._first is None or self._last is None:
            return 0.0, 0.0
        thread, threads, children, everything = (max(0, b - a) for a, b in zip(self._first, self._last, strict=True))
        others = max(everything - thread, threads + children)  # the clocks differ by some ticks
        return (threads / others, children / others) if others > 0 else (0.0, 0.0)

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
        if self._first is not None and time.monotonic() - self._read_at >= _READ_EVERY_S:
            self._last = self._read_occupancy()


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
    threads_share, children_share = clock.shares()
    return json.dumps(
        {
            "processors": processors(),
            "page_ns": _page_ns() if clock.steps else 0,  # the cost of a page fault, to weight those of steps
            "threads": torch.get_num_threads() if torch is not None else 0,
            "memory_limit_bytes": limit,
            "memory_peak_bytes": most,
            "threads_share": round(threads_share, 4),
            "children_share": round(children_share, 4),
            "steps": clock.steps,
        },
        separators=(",", ":"),  # identical to the output for a file that is read and written again
    )
