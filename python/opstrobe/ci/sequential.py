# SPDX-License-Identifier: Apache-2.0
"""Decides while pairs of runs are made whether head is slower than base by more than a gate, and stops as early as it can.

The times are looked at after numbers of pairs that are fixed before the first run, and once more if the time for the comparison is up: K looks in all. At
each of them a bound may be wrong with 1/K of its rate of errors. So all bounds of a comparison together keep that rate, whenever it stops (Bonferroni's
inequality, used as an error spending function; G. Lan and D. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983). At one
look, a bound is exact whatever else the machine does: see `intervals`. When the time is up does not depend on which run of a pair was which, so that look
is as exact as the others.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics

from opstrobe.ci.intervals import SIGNIFICANCE, Interval, compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# How often a program that is slower by more than the gate may be called not slower.
_MISSES = 1 / 100
_FIRST_LOOK = 17
_GROWTH = 1.3
# The smallest number of pairs after which one look at two clocks can call a program slower.
PAIRS_MIN = 13


class Verdict(enum.Enum):
    SLOWER = "slower"
    NOT_SLOWER = "not slower"
    UNDECIDED = "undecided"


def looks(pairs: int) -> list[int]:
    """The numbers of pairs after which times are looked at, if there are at most `pairs`."""
    found = [min(pairs, _FIRST_LOOK)]
    while found[-1] < pairs:
        found.append(min(pairs, math.ceil(found[-1] * _GROWTH)))
    return found


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What one clock says."""

    interval: Interval
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Decision:
    """What all clocks say after `pairs` pairs; `clock` is the one that decides, or would."""

    verdict: Verdict
    pairs: int
    clock: str
    clocks: Mapping[str, Bounds]


class Comparison:
    """Times of pairs of runs, by clock: "step", or "wall" and "cpu", or one of these two."""

    def __init__(self, gate: float, pairs: int) -> None:
        self.gate = gate
        self.looks = looks(pairs)
        self.base: dict[str, list[float]] = {}
        self.head: dict[str, list[float]] = {}

    def add(self, base: Mapping[str, float], head: Mapping[str, float]) -> None:
        for times, run in ((self.base, base), (self.head, head)):
            for clock, seconds in run.items():
                times.setdefault(clock, []).append(seconds)

    @property
    def pairs(self) -> int:
        return len(next(iter(self.base.values()), ()))

    def decide(self) -> Decision:
        """Looks at the times. Call it at each of `looks`, and at most once more."""
        clocks = {clock: self._bounds(clock) for clock in self.base}
        verdict, clock = self._verdict(clocks)
        return Decision(verdict, self.pairs, clock, clocks)

    def _bounds(self, clock: str) -> Bounds:
        count = len(self.looks) + 1
        interval = compare(
            self.base[clock],
            self.head[clock],
            SIGNIFICANCE / count / len(self.base),  # any clock can call a program slower
            _MISSES / count,
        )
        verdict = Verdict.UNDECIDED
        if interval.lower > self.gate:
            verdict = Verdict.SLOWER
        elif interval.upper <= self.gate:
            verdict = Verdict.NOT_SLOWER
        return Bounds(interval, verdict)

    def _verdict(self, clocks: Mapping[str, Bounds]) -> tuple[Verdict, str]:
        """Wall-clock time decides if it can. On a busy machine CPU time is more exact, and decides about programs that compute in one thread: more of it is
        more time, and no more of it is no more time if waits are not longer either."""
        if len(clocks) == 1:
            (clock,) = clocks
            return clocks[clock].verdict, clock
        wall, cpu = clocks["wall"].verdict, clocks["cpu"].verdict
        if wall is not Verdict.UNDECIDED:
            return wall, "wall"
        if cpu is Verdict.SLOWER and not self._is_parallel():
            return cpu, "cpu"
        if cpu is Verdict.NOT_SLOWER and not self._is_parallel() and self._waits_are_equal(clocks["cpu"].interval):
            return cpu, "cpu"
        return Verdict.UNDECIDED, "wall"

    def _is_parallel(self) -> bool:
        return any(
            statistics.median(cpu / wall for cpu, wall in zip(times["cpu"], times["wall"])) > 1.05
            for times in (self.base, self.head)
        )

    def _waits_are_equal(self, cpu: Interval) -> bool:
        """The time that a run does not compute is what it waits for others and what it waits for a processor. The shortest one has least of the latter."""
        base, head = (
            min(max(0.0, wall - cpu) for cpu, wall in zip(times["cpu"], times["wall"]))
            for times in (self.base, self.head)
        )
        return (head - base) / statistics.median(self.base["cpu"]) + cpu.upper <= self.gate

    def pairs_left(self, last: Decision | None) -> int:
        """An estimate of how many more pairs decide: intervals get narrower as the square root of the number of pairs grows."""
        for look in self.looks:
            if look > self.pairs and (last is None or look >= self._pairs_needed(last)):
                return look - self.pairs
        return self.looks[-1] - self.pairs

    def _pairs_needed(self, last: Decision) -> float:
        def needed(interval: Interval) -> float:
            distance = interval.estimate - self.gate
            width = interval.estimate - interval.lower if distance > 0 else interval.upper - interval.estimate
            return last.pairs * (width / distance) ** 2 if distance else math.inf

        return min(needed(bounds.interval) for bounds in last.clocks.values())
