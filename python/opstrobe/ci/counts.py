# SPDX-License-Identifier: Apache-2.0
"""Counts per step in two traces: operators, launches, bytes, synchronisations, graph breaks, recompiles. Counts do not
depend on the load of the machine, so a difference of one is significant."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from typing import NamedTuple

from opstrobe.query.database import Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_OPERATORS = "events where category = 'cpu_op' and not hidden"
_CALLS = "events where category in ('cpu_op', 'cuda_runtime', 'cuda_driver') and not hidden"
# By kind: what it counts, and a query for rows with name, step and count.
KINDS = {
    "operators": ("calls of operators", f"select name, step, 1 as n from {_OPERATORS}"),
    "launches": ("kernels, memory copies and memory sets", "select name, step, 1 as n from kernels"),
    "copied_bytes": (
        "bytes that devices copy",
        "select kernels.name, kernels.step, (args->>'bytes')::bigint as n from kernels join events using (id, path) "
        "where work = 'copy' and args->>'bytes' is not null",
    ),
    "allocated_bytes": (
        "bytes that are allocated",
        "select case when on_cpu then 'cpu' else 'device ' || device end as name, steps.step, bytes as n from memory "
        "join steps on time_ns >= steps.start_ns and time_ns < steps.start_ns + steps.dur_ns where bytes > 0 and not out_of_memory",
    ),
    "synchronisations": (
        "calls that wait for a device, and reads of a tensor's value",
        "select name, step, 1 as n from events where name = 'aten::_local_scalar_dense' "
        "or (category in ('cuda_runtime', 'cuda_driver') and name like '%Synchronize%')",
    ),
    "compiled_regions": (
        "runs of regions that torch.compile made; a graph break adds one",
        "select 'frame ' || frame as name, step, 1 as n from compile_events where kind = 'region'",
    ),
    "recompiles": (
        "regions that were compiled again",
        "select distinct 'frame ' || frame || ', compile ' || recompile as name, 0 as step, 1 as n from compile_events "
        "where kind = 'region' and recompile > 0",
    ),
}


@dataclasses.dataclass(frozen=True)
class Change:
    """A count that differs; `name` is None for the sum of a kind."""

    kind: str
    name: str | None
    base: float
    head: float
    file: str | None = None
    line: int | None = None

    @property
    def is_regression(self) -> bool:
        return self.name is None and self.head > self.base


class _Line(NamedTuple):
    """A line of the program, and how often it calls something per step."""

    file: str
    line: int
    calls: float


def _added_line(base: Iterable[_Line], head: Iterable[_Line]) -> tuple[str | None, int | None]:
    """The line with the most calls among those that `base` does not have. Lines move when others are added, so a line is also
    taken for one that makes as many calls in the same file."""
    added = list(head)
    for old in base:
        same = [new for new in added if new == old] or [
            new for new in added if (new.file, new.calls) == (old.file, old.calls)
        ]
        if same:
            added.remove(same[0])
    most = max(added, key=lambda line: line.calls, default=None)
    return (None, None) if most is None else (most.file, most.line)


class _Counts:
    """The counts of a trace by kind and name, and over all names, each as a list by step."""

    def __init__(self, path: str) -> None:
        self.by_name: dict[tuple[str, str | None], list[int]] = {}
        with contextlib.closing(Database([path])) as database:
            (steps,) = database.run("select distinct step from steps")
            numbers = steps["step"].to_pylist()
            # Without steps the complete trace counts as one.
            which = "step" if numbers else "0"
            self.steps = max(1, len(numbers))
            for kind, (_, query) in KINDS.items():
                (rows,) = database.run(
                    f"select name, {which} as step, sum(n) as n from ({query}) where {which} is not null group by 1, 2 "
                    f"union all select null, {which}, sum(n) from ({query}) where {which} is not null group by 2"
                )
                self._keep(kind, rows.to_pylist())
            (lines,) = database.run(
                f"select name, file, line, count(*) as n from {_CALLS} and {which} is not null and file is not null "
                "group by all order by min(id)"
            )
            self.lines: dict[str, list[_Line]] = {}
            for row in lines.to_pylist():
                line = _Line(row["file"], row["line"], row["n"] / self.steps)
                self.lines.setdefault(row["name"], []).append(line)

    def _keep(self, kind: str, rows: Iterable[dict[str, object]]) -> None:
        for row in rows:
            name = row["name"]
            self.by_name.setdefault((kind, None if name is None else str(name)), []).append(int(row["n"]))  # type: ignore[call-overload]

    def of_steps(self, key: tuple[str, str | None]) -> list[int]:
        counts = self.by_name.get(key, [])
        return counts if key[0] == "recompiles" else counts + [0] * (self.steps - len(counts))


def compare(base_path: str, head_path: str) -> list[Change]:
    """The counts that differ, sums of kinds first. The median step of `head` is compared; it differs if no step of
    `base` has as many or more, or as few or fewer."""
    base, head = _Counts(base_path), _Counts(head_path)
    changes = []
    for kind, name in sorted({*base.by_name, *head.by_name}, key=lambda key: (key[1] is not None, key)):
        before = base.of_steps((kind, name)) or [0]
        typical = statistics.median(head.of_steps((kind, name)) or [0])
        if min(before) <= typical <= max(before):
            continue
        file, line = _added_line(base.lines.get(str(name), ()), head.lines.get(str(name), ()))
        changes.append(Change(kind, name, statistics.median(before), typical, file, line))
    return changes
