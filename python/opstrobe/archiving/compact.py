# SPDX-License-Identifier: Apache-2.0
"""Compaction of many small parts into one, and retention."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import re

from opstrobe.archiving.add import TRACES_SCHEMA, write_traces, writer
from opstrobe.archiving.location import COMPACTED, TRACES, Location, Part
from opstrobe.archiving.packages import pyarrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Smaller parts are joined until they reach this size.
_PART_BYTES = 128 << 20
# Rows that are held in memory at once.
_ROWS = 1 << 17


def compact(location: Location) -> tuple[int, int]:
    """Joins small parts of the same job and date. Returns the number of parts before and after."""
    with location.lock():
        location.clean()
        before = len(location.parts())
        for group in _groups(location.parts()):
            names = [part.name for part in group]
            digest = hashlib.blake2b(" ".join(names).encode(), digest_size=10).hexdigest()
            location.write(
                group[0].job,
                group[0].date,
                f"{COMPACTED}{digest}",
                lambda folder, group=group: _fill(location, group, folder),  # type: ignore[misc]
                replaces=names,
            )
        location.clean()
        return before, len(location.parts())


def _groups(parts: list[Part]) -> Iterator[list[Part]]:
    for _, alike in itertools.groupby(parts, key=lambda part: (part.job, part.date)):
        group: list[Part] = []
        size = 0
        for part in alike:
            bytes_ = sum(part.sizes.values())
            if bytes_ >= _PART_BYTES or part.is_compacted:
                continue
            if size + bytes_ > _PART_BYTES and len(group) > 1:
                yield group
                group, size = [], 0
            group.append(part)
            size += bytes_
        if len(group) > 1:
            yield group


def _file(location: Location, part: Part, table: str) -> pyarrow.parquet.ParquetFile:
    from opstrobe.archiving.packages import parquet

    return parquet.ParquetFile(location.files.open(location.path(part.path, f"{table}.parquet"), "rb"))


def _fill(location: Location, group: list[Part], folder: str) -> None:
    for table in sorted({table for part in group for table in part.sizes} - {TRACES}):
        members = [part for part in group if table in part.sizes]
        schema = pyarrow.unify_schemas([_file(location, part, table).schema_arrow for part in members])
        with writer(folder, table, schema) as file:
            for rows in _batches(location, members, table, schema):
                file.write_table(rows)
    traces = [_file(location, part, TRACES).read() for part in group]
    write_traces(folder, pyarrow.concat_tables(traces, promote_options="default").cast(TRACES_SCHEMA))


def _batches(location: Location, members: list[Part], table: str, schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
    """Yields the rows of all members, in batches of the size of a row group."""
    empty = schema.empty_table()
    held: list[pyarrow.Table] = []
    for part in members:
        file = _file(location, part, table)
        for group in range(file.num_row_groups):
            held.append(pyarrow.concat_tables([empty, file.read_row_group(group)], promote_options="default"))
            if sum(rows.num_rows for rows in held) >= _ROWS:
                yield pyarrow.concat_tables(held)
                held = []
    if held:
        yield pyarrow.concat_tables(held)


def parse_age(text: str) -> datetime.timedelta:
    """Parses "90d", "12w" or "2y"."""
    found = re.fullmatch(r"(\d+)([dwy])", text)
    if not found:
        raise ValueError(f"invalid age '{text}': use days, weeks or years, such as 90d, 12w, 2y")
    return datetime.timedelta(days=int(found[1]) * {"d": 1, "w": 7, "y": 365}[found[2]])


def remove(location: Location, *, older_than: datetime.timedelta, job: str | None = None) -> int:
    """Removes parts older than that. Returns their number."""
    first = (datetime.datetime.now(datetime.timezone.utc) - older_than).date().isoformat()
    with location.lock():
        location.clean()
        gone = [part for part in location.parts() if part.date < first and job in (None, part.job)]
        for part in gone:
            location.remove(part)
    return len(gone)
