# SPDX-License-Identifier: Apache-2.0
"""Finds where the steps of an unmodified program end.

A program with a profiler schedule marks its steps itself. Otherwise a step ends with each step() of the optimizer that
steps first, and in a program that has not made an optimizer, with the fetch of the next batch. Readers derive steps by
the same rules from traces that mark none (docs/reference/definitions.md).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import opstrobe
from opstrobe import _core

# Sources of step ends, in order of priority: a better source replaces the others. step_marks.c has the number of _OPTIMIZER.
_NOBODY, _BATCHES, _OPTIMIZER, _PROGRAM, _STOPPED = range(5)


def _with_subclasses(of: type) -> list[Any]:
    """Returns the class and all classes that are derived from it."""
    classes = [of]
    for each in classes:
        classes += each.__subclasses__()
    return classes


def mark_found(profile: opstrobe.profile, begin: int, end: int) -> None:
    """Marks a step that a watch found, from one tick to another."""
    if not profile.step_num:
        profile.add_metadata("steps_found_by", "opstrobe run")  # known to src/derive/steps.h
    profile._mark_step(begin, end)


class StepWatch:
    """Calls `ended` at the end of each step, with the ticks of its start and end. To be created after the import of
    torch.

    Without `ended`, the watch of this process records the steps, tiny ones in groups, and `due` is called about once a
    second. `say` prints a message for the user.
    """

    def __init__(
        self,
        ended: Callable[[int, int], object] | None,
        say: Callable[[str], None],
        due: Callable[[], object] | None = None,
    ) -> None:
        self._marks = _core.StepMarks()
        self._marks.restart(ended, due)
        self._say = say
        self._begins_with_batch = False
        self._has_optimizer = False
        self._compiles = False
        self._patch_compiler: Callable[[], Any] | None = None
        self._quick_steps: dict[Any, _core.QuickStep] = {}  # by the function that each replaces
        self._watch_optimizers()
        self._watch_scaler()
        self._watch_batches()
        self._watch_profiler()

    def stop(self) -> None:
        """Reports no more steps until `restart`."""
        self._marks.restart(None)
        self._marks.source = _STOPPED

    def restart(self, ended: Callable[[int, int], object] | None, due: Callable[[], object] | None = None) -> None:
        self._marks.restart(ended, due)

    def quicken(self) -> None:
        """Replaces the functions around the step() of optimizers by quicker ones of C, unless the program compiles
        something: torch's compiler can only follow functions of Python."""
        from torch.optim import Optimizer

        if self._compiles or not self._watch_compiler():
            return
        for of in _with_subclasses(Optimizer):
            quick = self._quick_steps.get(vars(of).get("step"))
            if quick is not None:
                of.step = quick

    def _watch_compiler(self) -> bool:
        """Returns whether torch's compiler is loaded and has not been used. Torch calls TorchPatcher.patch before it
        compiles the first function."""
        from torch.optim import Optimizer

        patcher: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "TorchPatcher", None)
        inner = getattr(patcher, "patch", None)
        if inner is None or inner is self._patch_compiler:
            return inner is not None
        cache_info = getattr(inner, "cache_info", None)
        if cache_info is None or cache_info().currsize:
            self._compiles = True
            return False

        @functools.wraps(inner)
        def patch() -> Any:
            self._compiles = True
            for of in _with_subclasses(Optimizer):
                step = vars(of).get("step")
                if isinstance(step, _core.QuickStep):
                    of.step = step.python
            return inner()

        self._patch_compiler = patch
        patcher.patch = staticmethod(patch)
        return True

    def _watch_optimizers(self) -> None:
        """Optimizers have hooks for their step(), but they are called within the range `Optimizer.step#…` that torch
        records around it. So the method that adds this range around a class's step() is wrapped once more."""
        import torch.compiler
        from torch.optim import Optimizer

        # What torch.compile traces is not watched. The former of these functions takes less time.
        is_compiling = getattr(torch.compiler, "is_dynamo_compiling", torch.compiler.is_compiling)
        annotate = Optimizer.profile_hook_step
        add_param_group = Optimizer.add_param_group
        marks = self._marks
        enter, leave, abandon = marks.enter, marks.leave, marks.abandon

        def watched(inner: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(inner)
            def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                # A step() may call that of its base class, and a scaler calls the optimizer's.
                if is_compiling() or not enter(optimizer):
                    return inner(optimizer, *args, **kwargs)
                try:
                    result = inner(optimizer, *args, **kwargs)
                except BaseException:
                    abandon()
                    raise
                leave()
                return result

            self._quick_steps[step] = _core.QuickStep(marks, inner, step)
            return step

        def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
            self._has_optimizer = True
            if not marks.has_begin:
                marks.begin()
            return watched(annotate(function))

        @functools.wraps(add_param_group)
        def made(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            # The construction of an optimizer ends here. Torch imports its compiler during it.
            add_param_group(optimizer, *args, **kwargs)
            if marks.source == _NOBODY and not self._begins_with_batch:
                marks.begin()

        # Classes that were used before already have the range.
        for of in _with_subclasses(Optimizer):
            if getattr(vars(of).get("step"), "hooked", False):
                of.step = watched(of.step)
        Optimizer.profile_hook_step = staticmethod(profile_hook_step)  # type: ignore[assignment, method-assign]
        Optimizer.add_param_group = made  # type: ignore[assignment, method-assign]

    def _watch_scaler(self) -> None:
        """A scaler that finds infinite gradients skips the optimizer's step(), but this is still a step of the
        program."""
        from torch.amp.grad_scaler import GradScaler

        inner = GradScaler.step
        marks = self._marks

        @functools.wraps(inner)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not marks.enter(optimizer):
                return inner(scaler, optimizer, *args, **kwargs)
            try:
                result = inner(scaler, optimizer, *args, **kwargs)
            except BaseException:
                marks.abandon()
                raise
            marks.leave()
            return result

        GradScaler.step = step  # type: ignore[assignment, method-assign]

    def _watch_batches(self) -> None:
        """Used until an optimizer steps. The first step begins with the first batch of the loader that is iterated last
        before it."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter as Batches

        inner = Batches.__next__
        marks = self._marks

        @functools.wraps(inner)
        def fetch(batches: Any) -> Any:
            if marks.source > _BATCHES:
                Batches.__next__ = inner  # type: ignore[method-assign]
                return inner(batches)
            if not self._has_optimizer:
                marks.end(_BATCHES)
            elif batches._num_yielded == 0:
                marks.begin()
                self._begins_with_batch = True
            try:
                return inner(batches)
            except StopIteration:
                if not self._has_optimizer:
                    marks.break_()  # time after the last batch belongs to no step
                raise

        Batches.__next__ = fetch  # type: ignore[assignment, method-assign]

    def _watch_profiler(self) -> None:
        """A schedule makes torch's profiler mark the steps, which Opstrobe records. Torch runs only one profiler at a
        time, so the program's own profiler records nothing."""
        from torch.profiler import ProfilerAction, profile

        inner = profile.start

        @functools.wraps(inner)
        def start(profiler: Any) -> Any:
            if self._marks.source != _STOPPED:
                self._say(
                    "the program's torch.profiler records nothing while 'opstrobe run' records; "
                    "'opstrobe run --patch' records in its place"
                )
                profiler.schedule = lambda _: ProfilerAction.NONE
                profiler.current_action = ProfilerAction.NONE
                if profiler.record_steps:
                    self._marks.source = _PROGRAM
            return inner(profiler)

        profile.start = start  # type: ignore[assignment, method-assign]
