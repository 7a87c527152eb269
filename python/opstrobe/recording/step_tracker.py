# SPDX-License-Identifier: Apache-2.0
"""Counts each step of the program once, even if several callers count."""

from __future__ import annotations

from opstrobe._warn import warn


class KinetoStepTracker:
    """The number of steps of the program: the largest count of any requester.

    A profile counts as "ProfilerStep", and each optimizer may count for itself. A step that two of them count is one
    step.
    """

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Starts the count of `requester` at the current number of steps."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets `requester`. Returns whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Counts a step of `requester`. Returns the number of steps of the program."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        highest = max(cls._step_dict.values())
        if highest > cls._current_step:
            if highest > cls._current_step + 1:
                warn(
                    f"Profiler step count has increased more than 1 - current_step = {cls._current_step} "
                    f"step dict = {cls._step_dict}"
                )
            cls._current_step = highest
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The number of steps of the program."""
        return cls._current_step
