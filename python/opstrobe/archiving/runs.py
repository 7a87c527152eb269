# SPDX-License-Identifier: Apache-2.0
"""Which traces of an archive are of one run: ranks that were recorded together, as `opstrobe serve` groups them."""

from __future__ import annotations

import dataclasses
import datetime
import posixpath

from opstrobe import _core
from opstrobe.archiving.location import Location
from opstrobe.archiving.packages import pyarrow

_COLUMNS = ("run", "rank", "world_size", "start_ns", "dur_ns", "path")


@dataclasses.dataclass(frozen=True)
class Rank:
    """What a trace says about its process. Unknown ranks and world sizes are -1."""

    rank: int
    world_size: int
    start_ns: int
    end_ns: int
    path: str

    def is_with(self, other: Rank) -> bool:
        same_folder = posixpath.dirname(self.path) == posixpath.dirname(other.path)
        return _core.is_one_job(self._facts(), other._facts(), same_folder)

    def _facts(self) -> tuple[int, int, int, int]:
        return self.rank, self.world_size, self.start_ns, self.end_ns


def rank_of(trace: _core.Trace, path: str, rank: int | None) -> Rank:
    batch = pyarrow.RecordBatch._import_from_c_capsule(*trace.table("ranks", list(_COLUMNS[2:-1])))
    (row,) = batch.to_pylist()
    return _rank({**row, "path": path, "rank": rank})


def _rank(row: dict[str, object]) -> Rank:
    def number(name: str) -> int:
        value = row[name]
        return -1 if value is None else int(value)  # type: ignore[call-overload]

    start_ns = number("start_ns")
    return Rank(number("rank"), number("world_size"), start_ns, start_ns + number("dur_ns"), str(row["path"]))


class Runs:
    """The runs of a job in an archive. Those of a day are read when they are first needed."""

    def __init__(self, location: Location, job: str) -> None:
        self._location = location
        self.job = job
        self._days: set[str] = set()
        self._runs: dict[str, list[Rank]] = {}

    def find(self, rank: Rank, date: datetime.date) -> str | None:
        """Returns the run whose traces were all recorded together with this one; None if there is none."""
        if rank.rank < 0 or rank.world_size == 1:
            return None
        self._read({(date + datetime.timedelta(days)).isoformat() for days in (-1, 0, 1)})
        fitting = [run for run, ranks in self._runs.items() if all(rank.is_with(other) for other in ranks)]
        return min(fitting, key=lambda run: self._runs[run][0].start_ns, default=None)

    def add(self, run: str, rank: Rank) -> None:
        self._runs.setdefault(run, []).append(rank)

    def _read(self, days: set[str]) -> None:
        from opstrobe.archiving.packages import parquet

        days = days - self._days
        self._days |= days
        for part in self._location.parts() if days else ():
            if part.job == self.job and part.date in days and "ranks" in part.sizes:
                path = self._location.path(part.path, "ranks.parquet")
                with self._location.files.open(path, "rb") as file:
                    rows = parquet.read_table(file, columns=list(_COLUMNS))
                for row in rows.to_pylist():
                    self.add(str(row["run"]), _rank(row))
