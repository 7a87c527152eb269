# SPDX-License-Identifier: Apache-2.0
"""Finds where the steps of an unmodified program end.

A program with a profiler schedule marks its steps itself. Otherwise a step ends with each step() of the optimizer that
steps first, and in a program that has not made an optimizer, with the fetch of the next batch. Readers derive steps by
the same rules from traces that mark none (docs/reference/definitions.md).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from opstrobe import _core

# Sources of step ends, in order of priority: a better source replaces the others.
_NOBODY, _BATCHES, _OPTIMIZER, _PROGRAM, _STOPPED = range(5)


class StepWatch:
    """Calls `ended` at the end of each step, with the ticks of its start and end. To be created after the import of
    torch.

    `say` prints a message for the user.
    """

    def __init__(self, ended: Callable[[int, int], None], say: Callable[[str], None]) -> None:
        self._ended = ended
        self._say = say
        self._source = _NOBODY
        self._begin: int | None = None  # start of the current step
        self._begins_with_batch = False
        self._has_optimizer = False
        self._optimizer: weakref.ref[Any] = weakref.ref(set())  # the optimizer that steps first; none yet
        self._stepping = False
        self._watch_optimizers()
        self._watch_scaler()
        self._watch_batches()
        self._watch_profiler()

    def stop(self) -> None:
        """Reports no more steps until `restart`."""
        self._source = _STOPPED

    def restart(self, ended: Callable[[int, int], None]) -> None:
        self._ended = ended
        self._source = _NOBODY
        self._begin = None

    def _end(self, source: int, at: int | None = None) -> None:
        if source < self._source:
            return
        self._source = source
        now = _core.ticks() if at is None else at
        begin, self._begin = self._begin, now
        if begin is not None:
            self._ended(begin, now)

    def _watch_optimizers(self) -> None:
        """Optimizers have hooks for their step(), but they are called within the range `Optimizer.step#…` that torch
        records around it. So the method that adds this range around a class's step() is wrapped once more."""
        from torch.compiler import is_compiling
        from torch.optim import Optimizer

        annotate = Optimizer.profile_hook_step
        add_param_group = Optimizer.add_param_group

        def watched(inner: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(inner)
            def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                if is_compiling():
                    return inner(optimizer, *args, **kwargs)
                return self._step_of(optimizer, inner, optimizer, *args, **kwargs)

            return step

        def profile_hook_step(function: Callable[..., Any]) -> Callable[..., Any]:
            self._has_optimizer = True
            if self._begin is None:
                self._begin = _core.ticks()
            return watched(annotate(function))

        @functools.wraps(add_param_group)
        def made(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            # The construction of an optimizer ends here. Torch imports its compiler during it.
            add_param_group(optimizer, *args, **kwargs)
            if self._source == _NOBODY and not self._begins_with_batch:
                self._begin = _core.ticks()

        # Classes that were used before already have the range.
        classes = [Optimizer]
        for of in classes:
            classes += of.__subclasses__()
            if getattr(vars(of).get("step"), "hooked", False):
                of.step = watched(of.step)  # type: ignore[method-assign]
        Optimizer.profile_hook_step = staticmethod(profile_hook_step)  # type: ignore[assignment, method-assign]
        Optimizer.add_param_group = made  # type: ignore[assignment, method-assign]

    def _step_of(self, optimizer: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls the function that steps the optimizer. A step() may call that of its base class, and a scaler calls the
        optimizer's."""
        if self._optimizer() is None:
            self._optimizer = weakref.ref(optimizer)
        if self._stepping or self._optimizer() is not optimizer:
            return function(*args, **kwargs)
        self._stepping = True
        try:
            result = function(*args, **kwargs)
        finally:
            self._stepping = False
        self._end(_OPTIMIZER)
        return result

    def _watch_scaler(self) -> None:
        """A scaler that finds infinite gradients skips the optimizer's step(), but this is still a step of the
        program."""
        from torch.amp.grad_scaler import GradScaler

        inner = GradScaler.step

        @functools.wraps(inner)
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            return self._step_of(optimizer, inner, scaler, optimizer, *args, **kwargs)

        GradScaler.step = step  # type: ignore[assignment, method-assign]

    def _watch_batches(self) -> None:
        """Used until an optimizer steps. The first step begins with the first batch of the loader that is iterated last
        before it."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter as Batches

        inner = Batches.__next__

        @functools.wraps(inner)
        def fetch(batches: Any) -> Any:
            if self._source > _BATCHES:
                Batches.__next__ = inner  # type: ignore[method-assign]
                return inner(batches)
            now = _core.ticks()
            if not self._has_optimizer:
                self._end(_BATCHES, now)
            elif batches._num_yielded == 0:
                self._begin, self._begins_with_batch = now, True
            try:
                return inner(batches)
            except StopIteration:
                if not self._has_optimizer:
                    self._begin = None  # time after the last batch belongs to no step
                raise

        Batches.__next__ = fetch  # type: ignore[assignment, method-assign]

    def _watch_profiler(self) -> None:
        """A schedule makes torch's profiler mark the steps, which Opstrobe records. Torch runs only one profiler at a
        time, so the program's own profiler records nothing."""
        from torch.profiler import ProfilerAction, profile

        inner = profile.start

        @functools.wraps(inner)
        def start(profiler: Any) -> Any:
            if self._source != _STOPPED:
                self._say(
                    "the program's torch.profiler records nothing while 'opstrobe run' records; "
                    "'opstrobe run --patch' records in its place"
                )
                profiler.schedule = lambda _: ProfilerAction.NONE
                profiler.current_action = ProfilerAction.NONE
                if profiler.record_steps:
                    self._source = _PROGRAM
            return inner(profiler)

        profile.start = start  # type: ignore[assignment, method-assign]
