# SPDX-License-Identifier: Apache-2.0
"""Decides from the times of pairs of runs whether one of two programs is slower.

The order within a pair is random. So if both are the same program, each difference is as likely as its negative,
however loaded the machine is. Wilcoxon's signed-rank test is exact then: its rate of false alarms is the one chosen
here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The rate of false alarms.
_SIGNIFICANCE = 1 / 2000
# The smallest number of pairs that can reach this rate.
PAIRS_MIN = 11


@dataclasses.dataclass(frozen=True)
class Interval:
    """How much longer head takes, relative to base: the estimate, and bounds, each of which is wrong once in 2,000
    cases."""

    estimate: float
    lower: float
    upper: float


@functools.cache
def _rank_sum_limit(count: int) -> int:
    """Returns how many of the smallest averages of pairs lie below a bound."""
    ways = [1]  # by sum of ranks: the number of combinations of signs that give it
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for i, number in enumerate(ways):
            longer[i + rank] += number
        ways = longer
    allowed, total = _SIGNIFICANCE * 2**count, 0
    for limit, number in enumerate(ways):
        total += number
        if total > allowed:
            return limit
    return len(ways)


def compare(base: Sequence[float], head: Sequence[float]) -> Interval:
    """Compares positive times of pairs of runs: element i of both lists is a pair."""
    if len(base) < PAIRS_MIN:
        raise ValueError(f"{len(base)} pairs of runs are too few: {PAIRS_MIN} are needed")
    ratios = [math.log(after / before) for before, after in zip(base, head)]
    averages = sorted((a + b) / 2 for i, a in enumerate(ratios) for b in ratios[i:])
    limit = _rank_sum_limit(len(ratios))
    return Interval(
        *(math.expm1(value) for value in (statistics.median(averages), averages[limit - 1], averages[-limit]))
    )
