# SPDX-License-Identifier: Apache-2.0
"""How a metric of an archive changes by commit, date or run: where it jumps, and which operators and kernels explain
the jump."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics

from opstrobe.archiving.database import ArchiveDatabase, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS = "(select trace, count(*) as steps from steps group by trace)"


def _per_step(query: str) -> str:
    """A query for a sum by trace, divided by its number of steps."""
    return f"select trace, value / steps as value from ({query}) join {_STEPS} using (trace)"


# By name: a description, and a query for the value by trace.
METRICS = {
    "step_ms": ("median time of a step", "select trace, median(dur_ns) / 1e6 as value from steps group by trace"),
    "data_loading_ms": (
        "median time of a step in which it waits for its batch",
        "select trace, median(data_loading_ns) / 1e6 as value from steps group by trace",
    ),
    "kernel_ms": (
        "time of kernels, memory copies and memory sets for each step",
        _per_step("select trace, sum(dur_ns) / 1e6 as value from kernels where step is not null group by trace"),
    ),
    "collective_ms": (
        "time of collective operations for each step",
        _per_step("select trace, sum(dur_ns) / 1e6 as value from collectives where step is not null group by trace"),
    ),
    "operators": (
        "number of operators for each step",
        _per_step(
            "select trace, count(*) as value from events where category = 'cpu_op' and not hidden and step is not null group by trace"
        ),
    ),
    "peak_mb": (
        "peak of the memory that the allocator of any device has given out",
        "select trace, max(total_allocated) / 1e6 as value from memory group by trace",
    ),
}
BY = ("commit", "date", "run")
_KEYS = {"commit": "traces.commit", "date": "traces.date::varchar", "run": "traces.run"}

# The penalty of a new level, as a multiple of the logarithm of the number of points. Noise alone causes one new level
# in a hundred series.
_PENALTY = 5.0
# A jump is reported if it exceeds this multiple of the noise of the values around it, and there are at least this many
# values on each side.
_NOISES = 2.0
_SIDE = 3
# Number of traces on each side of a jump whose operators are compared.
_COMPARED = 20
_CAUSES = 5
# Changes below this share of the largest one explain nothing.
_CAUSE_SHARE = 0.01


@dataclasses.dataclass(frozen=True)
class Point:
    key: str
    value: float
    traces: list[str]


@dataclasses.dataclass(frozen=True)
class Jump:
    at: int  # index of the first point after it
    before: float
    after: float
    noise: float  # standard deviation of the points around it

    @property
    def percent(self) -> float | None:
        return 100 * (self.after / self.before - 1) if self.before else None


@dataclasses.dataclass(frozen=True)
class Cause:
    kind: str  # operator or kernel
    name: str
    before_ms: float
    after_ms: float

    @property
    def difference_ms(self) -> float:
        return self.after_ms - self.before_ms


def series(database: ArchiveDatabase, metric: str, by: str, job: str | None = None) -> list[Point]:
    """The median over the traces of each commit, date or run, in the order of their start."""
    if metric not in METRICS:
        raise ValueError(f"invalid metric '{metric}' (choose from {', '.join(METRICS)})")
    if by not in BY:
        raise ValueError(f"invalid group '{by}' (choose from {', '.join(BY)})")
    which = "" if job is None else f"and traces.job = {quoted(job)}"
    rows = database.rows(
        f"select {_KEYS[by]} as key, median(value) as value, list(trace order by trace) as traces from ({METRICS[metric][1]}) "
        f"join traces using (trace) where key is not null and value is not null {which} group by 1 order by min(traces.date), min(start_ns), 1"
    )
    return [Point(str(row["key"]), float(row["value"]), list(row["traces"])) for row in rows]  # type: ignore[arg-type, call-overload]


def jumps(values: Sequence[float]) -> list[Jump]:
    """Finds where the level of a series changes."""
    cuts = _divide(_without_outliers(values))
    found = []
    for i, at in enumerate(cuts):
        left, right = (
            values[cuts[i - 1] if i else 0 : at],
            values[at : cuts[i + 1] if i + 1 < len(cuts) else len(values)],
        )
        jump = Jump(at, statistics.median(left), statistics.median(right), _noise(left, right))
        if abs(jump.after - jump.before) > _NOISES * jump.noise:
            found.append(jump)
    return found


def trend_rows(points: Sequence[Point], found: Sequence[Jump]) -> list[dict[str, object]]:
    """The rows of the table archive_trend."""
    rows = []
    for i, point in enumerate(points):
        level = next((jump.after for jump in reversed(found) if jump.at <= i), None)
        if level is None:
            level = found[0].before if found else statistics.median(point.value for point in points)
        row: dict[str, object] = {"key": point.key, "value": point.value, "level": level, "traces": len(point.traces)}
        for jump in found:
            if jump.at == i:
                row.update(before=jump.before, change=jump.percent, noise=jump.noise)
        rows.append(row)
    return rows


def cause_rows(database: ArchiveDatabase, points: Sequence[Point], jump: Jump) -> list[dict[str, object]]:
    """The rows of the table archive_causes for a jump."""
    key = points[jump.at].key
    return [
        {"key": key, **vars(cause), "difference_ms": cause.difference_ms} for cause in causes(database, points, jump)
    ]


def _scatter(values: Sequence[float]) -> float:
    """The standard deviation between consecutive points. A few jumps and outliers do not change it. It is larger if few
    points estimate it, and never zero."""
    differences = [abs(after - before) for before, after in zip(values, values[1:])]
    least = 1e-9 * max(1e-9, *map(abs, values))
    return max((1 + 3 / len(values)) * 1.4826 * statistics.median(differences) / math.sqrt(2), least)


def _without_outliers(values: Sequence[float]) -> list[float]:
    """Limits values to three standard deviations from the median of their neighbours, since one slow run is not a new
    level."""
    if len(values) < 2:
        return list(values)
    most = 3 * _scatter(values)
    middles = [statistics.median(values[max(0, i - 2) : i + 3]) for i in range(len(values))]
    return [min(max(value, middle - most), middle + most) for value, middle in zip(values, middles)]


def _divide(values: Sequence[float]) -> list[int]:
    """Indexes at which a new level begins: the division with the least squared distances from the means of its parts.
    Each part is penalised by what a part that noise alone causes would gain."""
    count = len(values)
    if count < 2 * _SIDE:
        return []
    sums = [0.0, *itertools.accumulate(value - values[0] for value in values)]
    squares = [0.0, *itertools.accumulate((value - values[0]) ** 2 for value in values)]
    penalty = _PENALTY * math.log(count) * _scatter(values) ** 2
    best = [math.inf] * (count + 1)
    begin = [0] * (count + 1)
    best[0] = 0.0
    for end in range(_SIDE, count + 1):
        for start in (0, *range(_SIDE, end - _SIDE + 1)):
            total = sums[end] - sums[start]
            cost = best[start] + squares[end] - squares[start] - total * total / (end - start) + penalty
            if cost < best[end]:
                best[end], begin[end] = cost, start
    cuts = []
    at = begin[count]
    while at:
        cuts.append(at)
        at = begin[at]
    return cuts[::-1]


def _noise(*parts: Sequence[float]) -> float:
    """The standard deviation around the medians, estimated so that a few outliers do not count."""
    rests = [abs(value - statistics.median(part)) for part in parts for value in part]
    return 1.4826 * statistics.median(rests)


def causes(database: ArchiveDatabase, points: Sequence[Point], jump: Jump) -> list[Cause]:
    """The operators and kernels whose time per step changed most between the points before a jump and those after
    it."""
    before = [trace for point in points[: jump.at] for trace in point.traces][-_COMPARED:]
    after = [trace for point in points[jump.at :] for trace in point.traces][:_COMPARED]
    names = {True: before, False: after}
    either = ", ".join(f"'{trace}'" for trace in [*before, *after])
    first = ", ".join(f"'{trace}'" for trace in before)
    # A name that does not occur in a trace counts as no time there, so sums are divided by the steps of all traces of a
    # side.
    steps = database.rows(
        f"select trace in ({first}) as is_before, count(*) as steps from steps where trace in ({either}) group by 1"
    )
    counts = {bool(row["is_before"]): int(row["steps"]) for row in steps}  # type: ignore[call-overload]
    if len(counts) < len(names):
        return []

    def sums(kind: str, column: str, source: str) -> str:
        return (
            f"select '{kind}' as kind, name, coalesce(sum({column}) filter (trace in ({first})), 0) / 1e6 / {counts[True]} as before_ms, "
            f"coalesce(sum({column}) filter (trace not in ({first})), 0) / 1e6 / {counts[False]} as after_ms "
            f"from {source} and trace in ({either}) and step is not null group by name"
        )

    rows = database.rows(
        f"{sums('operator', 'self_ns', 'events where category = ' + repr('cpu_op') + ' and not hidden')} "
        f"union all {sums('kernel', 'dur_ns', 'kernels where true')} order by abs(after_ms - before_ms) desc limit {_CAUSES}"
    )
    found = [Cause(**row) for row in rows]  # type: ignore[arg-type]
    changes = [abs(cause.difference_ms) for cause in found]
    return [cause for cause, change in zip(found, changes) if change > _CAUSE_SHARE * changes[0]]
