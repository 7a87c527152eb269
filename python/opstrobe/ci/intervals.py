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
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The rate of false alarms.
SIGNIFICANCE = 1 / 2000
# The smallest number of pairs that can reach this rate.
PAIRS_MIN = 11


@dataclasses.dataclass(frozen=True)
class Interval:
    """How much longer head takes, relative to base: the estimate, and bounds."""

    estimate: float
    lower: float
    upper: float


@functools.cache
def _rank_sum_limit(count: int, significance: float) -> int:
    """Returns how many of the smallest averages of pairs lie below a bound; 0 if no bound is right as often as required."""
    # The number of combinations of signs by their sum of ranks, up to half of the largest sum: digits of one integer, to which a rank adds itself, shifted.
    digit = count // 8 + 1  # bytes
    sums = count * (count + 1) // 4 + 1
    ways, mask = 1, (1 << (8 * digit * sums)) - 1
    for rank in range(1, count + 1):
        ways += (ways << (8 * digit * rank)) & mask
    digits = ways.to_bytes(digit * sums + 1, "little")
    allowed, total = Fraction(significance) * 2**count, 0
    for limit in range(sums):
        total += int.from_bytes(digits[limit * digit : (limit + 1) * digit], "little")
        if total > allowed:
            return limit
    return sums


def compare(
    base: Sequence[float],
    head: Sequence[float],
    significance: float = SIGNIFICANCE,
    significance_of_upper: float | None = None,
) -> Interval:
    """Compares positive times of pairs of runs: element i of both lists is a pair. A bound is wrong as often as its significance says, once in 2,000 cases
    by default, and infinite if there are too few pairs for that."""
    ratios = [math.log(after / before) for before, after in zip(base, head)]
    averages = sorted((a + b) / 2 for i, a in enumerate(ratios) for b in ratios[i:])
    lower = _rank_sum_limit(len(ratios), significance)
    upper = _rank_sum_limit(len(ratios), significance if significance_of_upper is None else significance_of_upper)
    return Interval(
        math.expm1(statistics.median(averages)),
        math.expm1(averages[lower - 1]) if lower else -math.inf,
        math.expm1(averages[-upper]) if upper else math.inf,
    )
