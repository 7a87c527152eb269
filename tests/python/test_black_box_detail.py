# SPDX-License-Identifier: Apache-2.0
"""What a black box records of allocations, and when they are switched off."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
import torch

import opstrobe
from opstrobe import _core

SIZE = 1_234_560


def sizes(box: opstrobe.black_box) -> list[int]:
    """The recorded allocations of SIZE bytes, and their frees as negative numbers."""
    events: Any = box.snapshot().events()
    return [event.self_cpu_memory_usage for event in events if abs(event.self_cpu_memory_usage) == SIZE]


def allocate() -> Any:
    return torch.empty(SIZE, dtype=torch.uint8)


def test_allocations_and_frees_on_all_threads() -> None:
    before = allocate()
    with opstrobe.black_box(budget=0, sample_ms=0) as box:
        del before  # of unknown size, so it is not recorded
        kept = [allocate() for _ in range(3)]
        assert sizes(box) == [SIZE] * 3
        thread = threading.Thread(target=kept.clear)  # a thread that runs no operator
        thread.start()
        thread.join()
        assert sorted(sizes(box)) == [-SIZE] * 3 + [SIZE] * 3
        left = allocate()
    del left  # after the box: nothing is recording


def test_many_sizes() -> None:
    with opstrobe.black_box(budget=0, sample_ms=0, max_bytes="64MB") as box:
        kept = [torch.empty(1 + number % 1000, dtype=torch.uint8) for number in range(5000)]
        del kept[::2]
        del kept[1::2]
        freed = [event.self_cpu_memory_usage for event in box.snapshot().events() if event.name == "[memory]"]
        expected = [-(1 + number % 1000) for number in range(5000) if number % 2 == 0]
        expected += [-(1 + number % 1000) for number in [*range(1, 5000, 2)][1::2]]
        assert sorted(freed) == sorted(expected)


def test_a_failed_allocation() -> None:
    with opstrobe.black_box(budget=0, sample_ms=0) as box:
        with pytest.raises(RuntimeError):
            torch.empty(2**60, dtype=torch.uint8)
        names = [event.name for event in box.snapshot().events()]
    assert "[OutOfMemory]" in names


def test_what_lives_counts_as_freed_when_allocations_are_switched_off() -> None:
    with opstrobe.black_box(budget=0, sample_ms=0) as box:
        kept = [allocate() for _ in range(2)]
        _core.watch_set_detail("steps")
        assert sorted(sizes(box)) == [-SIZE] * 2 + [SIZE] * 2
        kept.append(allocate())
        kept.pop()
        _core.watch_set_detail("operators")
        kept.clear()  # not known any more
        gc.collect()
        assert sorted(sizes(box)) == [-SIZE] * 2 + [SIZE] * 2
        kept.append(allocate())
        assert sorted(sizes(box)) == [-SIZE] * 2 + [SIZE] * 3
