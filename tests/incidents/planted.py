# SPDX-License-Identifier: Apache-2.0
"""A program that trains until something goes wrong: planted.py KIND BOX INCIDENTS.

The line that is to be named as the place of an incident ends with a comment "plant: KIND".
"""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

import torch
from torch.utils.data import DataLoader, Dataset

from opstrobe import _core, profile
from opstrobe.blackbox import triggers

KIND, BOX, INCIDENTS = sys.argv[1:4]
STEPS = 60
SLOW_AT = 50
torch.set_num_threads(1)

model = torch.nn.Linear(64, 64)
lock = threading.Lock()


def too_long() -> float:
    """Seconds that make a step slow for sure, on a busy machine, too."""
    limit = _core.watch_limit()
    return 1.0 + (1.5 * limit if limit < math.inf else 0)


# --- what goes wrong ----------------------------------------------------------------------------------------------------


def sleep() -> None:
    time.sleep(too_long())  # plant: sleep


def collect_garbage() -> None:
    nodes: list[list[object]] = [[] for _ in range(300_000)]
    for node in nodes:
        node.append(nodes)
    until = time.monotonic() + too_long()
    while time.monotonic() < until:
        gc.collect()  # plant: gc


def wait_for_lock() -> None:
    seconds = too_long()
    taken = threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            time.sleep(seconds)

    threading.Thread(target=hold).start()
    taken.wait()
    with lock:  # plant: lock
        pass


def compute() -> None:
    until = time.monotonic() + too_long()
    total = 0
    while time.monotonic() < until:
        total += sum(range(10_000))  # plant: compute


def lose_page_cache() -> None:
    """Reads a mapped file whose pages the kernel has dropped, at random, so that each page is read from the disk."""
    size = 64 << 20
    until = time.monotonic() + too_long()
    with open(os.path.join(BOX, "data"), "w+b") as file, mmap.mmap(_filled(file, size), size) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        draw = random.Random(0)
        while time.monotonic() < until:
            pages.madvise(mmap.MADV_DONTNEED)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            offsets = [draw.randrange(0, size, mmap.PAGESIZE) for _ in range(2000)]
            sum(map(pages.__getitem__, offsets))  # plant: page_cache


def _filled(file: BinaryIO, size: int) -> int:
    file.write(bytes(size))
    file.flush()
    os.fsync(file.fileno())
    return file.fileno()


def raise_error() -> None:
    raise ValueError("the loss is not finite")  # plant: exception


def fault() -> None:
    ctypes.string_at(16)  # plant: segv


def abort() -> None:
    os.abort()  # plant: abort


def exit_now() -> None:
    os._exit(3)  # plant: exit


def kill() -> None:
    time.sleep(2.5)  # plant: kill
    os.kill(os.getpid(), signal.SIGKILL)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)  # plant: terminate


def exhaust_memory() -> None:
    import resource

    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
    held = []
    while True:
        held.append(bytearray(32 << 20))  # plant: memory


def exhaust_tensors() -> None:
    import resource

    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
    held = []
    while True:
        held.append(torch.empty(8 << 20))  # plant: tensors


def fill_control_group() -> None:
    held = []
    while True:  # it sleeps so that the watching thread sees how much memory the process holds
        held.append((torch.ones(4 << 20), time.sleep(0.02)))  # plant: control_group


def hold_gil() -> None:
    libc = ctypes.PyDLL(None)  # calls of it keep the GIL
    libc.sleep(3600)  # plant: gil


def hang_in_extension() -> None:
    library = ctypes.PyDLL(os.path.join(BOX, "libspin.so"))
    library.spin_forever()  # plant: spin


def deadlock() -> None:
    lock.acquire()
    lock.acquire()  # plant: deadlock


def hang_in_collective() -> None:
    import torch.distributed as dist

    tensor = torch.ones(4)
    if dist.get_rank() == 0:
        dist.all_reduce(tensor)  # plant: collective
    time.sleep(3600)


PLANTS: dict[str, Callable[[], None]] = {
    "sleep": sleep,
    "gc": collect_garbage,
    "lock": wait_for_lock,
    "compute": compute,
    "page_cache": lose_page_cache,
    "exception": raise_error,
    "segv": fault,
    "abort": abort,
    "exit": exit_now,
    "kill": kill,
    "terminate": terminate,
    "memory": exhaust_memory,
    "tensors": exhaust_tensors,
    "control_group": fill_control_group,
    "gil": hold_gil,
    "spin": hang_in_extension,
    "deadlock": deadlock,
    "collective": hang_in_collective,
}


class Batches(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> torch.Tensor:
        if KIND == "loader" and index == SLOW_AT:
            time.sleep(too_long())  # plant: loader
        return torch.ones(64)


@torch.no_grad()
def update(of: torch.nn.Module) -> None:
    """Takes the place of an optimizer, whose constructor imports torch's compiler: a second of CPU time."""
    for parameter in of.parameters():
        assert parameter.grad is not None
        parameter.sub_(parameter.grad, alpha=0.01)


# --- training -----------------------------------------------------------------------------------------------------------


def main() -> None:
    if KIND == "collective":
        torch.distributed.init_process_group("gloo")
    path = os.path.join(BOX, f"planted.{os.getpid()}")
    recording = profile(spill=BOX, profile_memory=True)
    recording.start()
    assert recording.profiler is not None
    triggers.start(
        INCIDENTS,
        page=path + ".opwatch",
        recording=recording.profiler.spill_path,
        slow_step_seconds=0.5,  # other work on the machine makes some steps slow, too
        hang_seconds=2 if KIND in ("gil", "spin", "deadlock", "collective") else 600,
    )
    marks = _core.StepMarks()
    marks.restart(None)
    marks.begin()
    for number, batch in enumerate(DataLoader(Batches())):
        if number == SLOW_AT and KIND in PLANTS:
            PLANTS[KIND]()
        model.zero_grad()
        model(batch).square().sum().backward()
        update(model)
        time.sleep(0.02)  # so that what else runs on the machine changes little
        marks.end(1)
    triggers.stop()
    recording.stop()
    assert "torch._dynamo" not in sys.modules


main()
