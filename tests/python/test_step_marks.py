# SPDX-License-Identifier: Apache-2.0
"""Where steps end: which optimizer's, in which order of sources, and several as one."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest
import torch

import opstrobe
from opstrobe import _core


class Marks:
    """Steps reported as pairs of ticks."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []
        self.marks = _core.StepMarks()
        self.marks.restart(lambda begin, end: self.steps.append((begin, end)))

    def step(self, optimizer: object) -> bool:
        entered = self.marks.enter(optimizer)
        if entered:
            self.marks.leave()
        return entered


class Optimizer:
    pass


def test_steps_follow_each_other() -> None:
    of, optimizer = Marks(), Optimizer()
    assert not of.marks.has_begin
    for _ in range(3):
        assert of.step(optimizer)
    assert len(of.steps) == 2  # where the first one began is not known
    assert of.steps[0][0] < of.steps[0][1] == of.steps[1][0] < of.steps[1][1]
    of.marks.break_()
    of.step(optimizer)
    assert len(of.steps) == 2
    of.marks.restart(None)


def test_the_optimizer_that_steps_first() -> None:
    of, first, other = Marks(), Optimizer(), Optimizer()
    of.marks.begin()
    assert of.step(first)
    assert not of.step(other)
    assert of.marks.enter(first)
    assert not of.marks.enter(first)  # the step() of a base class
    of.marks.leave()
    assert len(of.steps) == 2
    assert of.marks.enter(first)
    of.marks.abandon()  # it raised an exception
    assert of.step(first)
    assert len(of.steps) == 3
    del first
    gc.collect()
    assert of.step(other)


def test_better_sources_replace_others() -> None:
    of, optimizer = Marks(), Optimizer()
    of.marks.begin()
    of.marks.end(1)
    assert of.marks.source == 1
    of.step(optimizer)
    of.marks.end(1)
    assert (of.marks.source, len(of.steps)) == (2, 2)
    of.marks.source = 4
    assert not of.step(optimizer)
    with pytest.raises(TypeError):
        of.marks.end("2")  # type: ignore[arg-type]


def test_errors_of_the_receiver_are_passed_on() -> None:
    marks = _core.StepMarks()
    marks.restart(lambda begin, end: [][begin])
    marks.begin()
    with pytest.raises(IndexError):
        marks.end(1)


def test_several_steps_are_recorded_as_one(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with opstrobe.black_box(budget=0, sample_ms=0) as box:
        _core.watch_set_detail("steps", 4)
        assert _core.watch_group() == 4
        for _ in range(13):
            optimizer.step()
        box.snapshot().export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    marked = [event["name"] for event in events if event["name"].startswith("ProfilerStep#")]
    assert marked == ["ProfilerStep#0", "ProfilerStep#4", "ProfilerStep#8"]
