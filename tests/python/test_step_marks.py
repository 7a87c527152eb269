# SPDX-License-Identifier: Apache-2.0
"""Where steps end: which optimizer's, in which order of sources, and several as one."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
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


def test_a_quick_step_does_what_the_function_does() -> None:
    of, optimizer, calls = Marks(), Optimizer(), []

    def inner(self: object, closure: object = None, *, fails: bool = False) -> str:
        calls.append((self, closure))
        of.step(optimizer)  # the step() of a base class does not count
        if fails:
            raise OSError
        return "result"

    def python(self: object) -> None: ...

    class Quick:
        step = _core.QuickStep(of.marks, inner, python)

    quick = Quick()
    results = [quick.step(), None]  # an assertion would get the method first, and call that
    results[1] = quick.step("closure")
    assert results == ["result", "result"]
    assert calls == [(quick, None), (quick, "closure")]
    assert len(of.steps) == 1
    with pytest.raises(OSError):
        quick.step(fails=True)
    assert not of.step(optimizer)  # another optimizer was first
    results[0] = quick.step()
    assert results[0] == "result" and len(of.steps) == 2
    assert Quick.step is python and quick.step.__func__ is python  # type: ignore[attr-defined]
    assert vars(Quick)["step"](quick, closure=1) == "result"
    with pytest.raises(TypeError, match="StepMarks"):
        _core.QuickStep(1, inner, python)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        vars(Quick)["step"]()


QUICK = """
import sys
import torch
import opstrobe
from opstrobe import _core
from opstrobe.recording import black_box

class Derived(torch.optim.SGD):
    pass

with opstrobe.black_box(sample_ms=0, spill=sys.argv[1], incidents=sys.argv[1]) as box:
    model = torch.nn.Linear(4, 4)
    optimizer = Derived(model.parameters(), lr=0.1)
    box._each_second()
    assert type(vars(Derived)["step"]) is _core.QuickStep
    optimizer.step()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    other = Derived(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.step()  # the method that the scheduler replaced: a function of Python
        other.step()      # not the optimizer that steps first
    names = [event.name for event in box.snapshot().events() if event.name.startswith("ProfilerStep")]
    assert len(names) == 7, names

    def train(x):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return x + 1

    torch.compile(train, backend="eager")(torch.ones(4, 4))
    assert type(vars(Derived)["step"]) is not _core.QuickStep
    box._each_second()
    assert type(vars(Derived)["step"]) is not _core.QuickStep
print("done")
"""


def test_steps_are_quick_until_something_is_compiled(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", QUICK, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


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
