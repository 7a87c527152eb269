# SPDX-License-Identifier: Apache-2.0
"""What a black box records of allocations, and when they are switched off."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
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


def test_what_is_called_in_each_step_is_removed_with_its_detail() -> None:
    from torch.optim.optimizer import _global_optimizer_post_hooks as hooks

    model = torch.nn.Linear(4, 4)
    before = len(hooks)

    def calls(box: opstrobe.black_box) -> int:
        events: Any = box.snapshot().events()
        return sum(event.name == "nn.Module: Linear_0" for event in events)

    with opstrobe.black_box(budget=0, sample_ms=0) as box:
        model(torch.randn(2, 4))
        assert calls(box) == 1
        assert torch._C._autograd._profiler_enabled()
        assert len(hooks) == before + 1
        for _ in range(2):
            _core.watch_set_detail("steps")
            box._each_second()
            assert not torch._C._autograd._profiler_enabled()
            assert len(hooks) == before
            model(torch.randn(2, 4))
        assert calls(box) == 1
        _core.watch_set_detail("operators")
        box._each_second()
        model(torch.randn(2, 4))
        assert calls(box) == 2
        assert torch._C._autograd._profiler_enabled()
        assert len(hooks) == before + 1
    assert len(hooks) == before
    assert not torch._C._autograd._profiler_enabled()


def test_the_number_of_events_decides_before_steps_are_compared() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with opstrobe.black_box(sample_ms=0, max_bytes="16MB") as box:
        for number in range(3000):
            optimizer.zero_grad()
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
            if number % 100 == 99:
                found = json.loads(box.snapshot(seconds=0.1).metadata["black_box"])
                if found["exceeded"] is not None:
                    break
    assert found["expected"]
    assert found["exceeded"] > 0.01
    assert found["detail"] != "operators"


def test_a_slow_step_has_operators_whatever_the_budget(tmp_path: Path) -> None:
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    big = torch.randn(300, 300)
    with opstrobe.black_box(sample_ms=0, budget="0.01%", spill=tmp_path / "box", incidents=tmp_path / "kept") as box:
        for number in range(300):
            if number > 150 and json.loads(box.snapshot(seconds=0.1).metadata["black_box"])["detail"] == "steps":
                limit = _core.watch_limit()
                until = time.monotonic() + 1 + (1.5 * limit if limit < 1e9 else 0)
                while time.monotonic() < until:
                    torch.mm(big, big)
                optimizer.step()
                break
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
            time.sleep(0.02)
        deadline = time.monotonic() + 60
        while not list((tmp_path / "kept").glob("*/report.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
    (path,) = (tmp_path / "kept").glob("*/report.json")
    report = json.loads(path.read_text())
    assert (report["trigger"], report["black_box"]["detail"]) == ("slow_step", "steps")
    assert "aten::mm" in [event["name"] for event in report["difference"]["events"]]
    command = [
        str(Path(sys.executable).with_name("opstrobe")),
        "incidents",
        "--directory",
        str(tmp_path / "kept"),
        "show",
        "latest",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (
        "Operators are recorded only in the part of a slow step that was too long, so other steps have none." in shown
    )
    assert "    0 %" not in shown.partition("\nmemory\n")[0]  # in which shares may be 0
