# SPDX-License-Identifier: Apache-2.0
"""Decides which steps run with a fix, and evaluates their times and results."""

from __future__ import annotations

import dataclasses
import math
import statistics

from opstrobe.ci.intervals import PAIRS_MIN, compare
from opstrobe.proving.programs import WARM_UP_STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    # For each step: bits and norm of each value.
    Results = list[list[tuple[int, float]]]

# 30 pairs detect a third of a step, on a machine on which one step in ten takes up to twice as long.
PAIRS = 30
# Limit on the steps whose results are kept.
STEPS_MAX = 4096
# The first step after a switch is not measured, so a block has at least two steps. A longer block has less noise;
# beyond this time that helps little.
_BLOCK_MIN = 2
_BLOCK_S = 0.05
# Tolerance for results of the first steps with a fix that computes the same in another order.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Pairs of blocks of steps, one with the fix and one without. The first pair is not measured: it compiles and fills caches."""

    pairs: int
    block: int

    @property
    def steps(self) -> int:
        return WARM_UP_STEPS + 2 * self.block * (self.pairs + 1)


def blocks_for(steps: int, step_s: float, pairs: int) -> Blocks | None:
    """Returns None if the program has too few steps."""
    usable = min(steps, STEPS_MAX) - WARM_UP_STEPS
    pairs = min(pairs, usable // (2 * _BLOCK_MIN) - 1)
    if pairs < PAIRS_MIN:
        return None
    enough = max(_BLOCK_MIN, math.ceil(_BLOCK_S / max(step_s, 1e-9)))
    return Blocks(pairs, min(usable // (2 * (pairs + 1)), enough))


@dataclasses.dataclass(frozen=True)
class Gain:
    """The gain of a fix as percent of a step; negative: it costs time."""

    percent: float
    lower_percent: float
    upper_percent: float
    ms_per_step: float
    pairs: int

    @property
    def sign(self) -> int:
        """1: it saves time, -1: it costs time, 0: uncertain."""
        return (self.lower_percent > 0) - (self.upper_percent < 0)


def gain_of(base: Sequence[float], head: Sequence[float]) -> Gain:
    """Computes the gain from seconds per step without and with the fix: element i of both lists is a pair."""
    longer = compare(base, head)
    return Gain(
        percent=-100 * longer.estimate,
        lower_percent=-100 * longer.upper,
        upper_percent=-100 * longer.lower,
        ms_per_step=-1000 * longer.estimate * statistics.median(base),
        pairs=len(base),
    )


@dataclasses.dataclass(frozen=True)
class Sameness:
    """`kind`: "equal" bit for bit, "close" within the tolerance, "changed", or "unknown"."""

    kind: str
    text: str
    steps: int
    relative_difference: float | None = None


def _difference(before: list[tuple[int, float]], after: list[tuple[int, float]]) -> float:
    """Returns the largest relative difference between two steps."""
    if len(before) != len(after):
        return math.inf
    found = 0.0
    for (bits, value), (other_bits, other) in zip(before, after):
        if bits == other_bits:
            continue
        scale = max(abs(value), abs(other), 1e-6)
        difference = abs(value - other) / scale
        found = max(found, math.inf if math.isnan(difference) else difference)
    return found


def _is_equal(before: list[tuple[int, float]], after: list[tuple[int, float]]) -> bool:
    return [bits for bits, _ in before] == [bits for bits, _ in after]


def judge(
    reference: Results, found: Results, *, repeats: Results, first_on: int, close_until: int, exact: bool
) -> Sameness:
    """`repeats` are results of another run without the fix: if they are equal, the program is deterministic. `first_on`
    is the first step with the fix. Results that only have to be close are compared up to the step `close_until`, since
    small differences grow."""
    steps = min(len(reference), len(found))
    if not any(reference[first_on:steps]):
        return Sameness("unknown", "the steps have no results that could be compared", steps)
    if all(map(_is_equal, reference[:steps], found)):
        return Sameness("equal", f"equal bit for bit in {steps} steps", steps)
    if not all(map(_is_equal, reference, repeats)):
        return Sameness("unknown", "not comparable: without the fix, too, they differ from run to run", steps)
    until = steps if exact else min(close_until, steps)
    different = next(i for i in range(steps) if not _is_equal(reference[i], found[i]))
    largest = max(map(_difference, reference[first_on:until], found[first_on:until]), default=0.0)
    if not exact and largest <= TOLERANCE:
        text = f"the same within {max(largest, 1e-16):.0e} in the first {until - first_on} steps with it (tolerance {TOLERANCE:.0e})"
        return Sameness("close", text, until, largest)
    return Sameness("changed", f"CHANGED from step {different} on", steps, largest if math.isfinite(largest) else None)
