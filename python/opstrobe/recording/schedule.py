# SPDX-License-Identifier: Apache-2.0
"""Selects which steps of a program are recorded."""

from __future__ import annotations

from opstrobe._enums import ProfilerAction
from opstrobe._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule for `profile`: maps the number of a step to the action of the profiler in it.

    The first `skip_first` steps are left out. Then come cycles of `wait` idle steps, `warmup` steps that prepare, and
    `active` steps that are recorded, the last of which ends the cycle. There are `repeat` cycles, or cycles for ever
    when it is 0. A `skip_first_wait` other than 0 leaves out the `wait` of the first cycle.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        if 0 < repeat <= step / cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of
