# SPDX-License-Identifier: Apache-2.0
"""An archive as tables of DuckDB, which reads the columns and row groups of its files that a query needs."""

from __future__ import annotations

import re

from opstrobe.archiving.add import TRACES_SCHEMA, WHOSE
from opstrobe.archiving.location import TRACES, Location, Part
from opstrobe.archiving.packages import pyarrow
from opstrobe.query.database import connect, duckdb, fetch
from opstrobe.query.schema import TRACE_COLUMNS, tables
from opstrobe.query.tables import plain_type, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Files may be compacted or removed when a query starts to read them.
_TRIES = 3
_SHARED_COLUMNS = [
    {"name": "job", "type": "text", "about": "what the trace is of"},
    {"name": "date", "type": "date", "about": "day on which the recording began, UTC"},
    {"name": "run", "type": "text", "about": "execution of the job"},
    {"name": "commit", "type": "text", "about": "revision of the program"},
    {"name": "trace", "type": "text", "about": "id of the trace"},
    *TRACE_COLUMNS,
]
# Whether the start of a trace is known. Parts of earlier versions do not have the column.
DATED = "(dated_by = 'recording' or dated_by is null and start_ns > 1000000000000000000)"
_TRACES_TABLE = {
    "id": TRACES,
    "about": "a trace of the archive",
    "columns": [
        {
            "name": "start_ns",
            "type": "integer",
            "about": "start of the recording, since the Unix epoch; 0 or since another time if dated_by is not recording",
            "unit": "ns",
        },
        {"name": "dur_ns", "type": "integer", "about": "duration of the recording", "unit": "ns"},
        {"name": "added_ns", "type": "integer", "about": "when it was added, since the Unix epoch", "unit": "ns"},
        {
            "name": "source_bytes",
            "type": "integer",
            "about": "size of the file that it was added from",
            "unit": "bytes",
        },
        {"name": "schema", "type": "text", "about": "version of the tables"},
        {"name": "file", "type": "text", "about": "hash of the file that it was added from"},
        {
            "name": "dated_by",
            "type": "text",
            "about": "what the date is of: recording; file, when it was last written; or added, when neither is known",
        },
    ],
}


class ArchiveDatabase:
    """The tables of `opstrobe.query.database`, and `traces`, each with the additional columns job, date, run, commit,
    trace, path and rank."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._connection = connect()
        if not location.is_local:
            self._connection.register_filesystem(location.files)
        self._seen: list[Part] | None = None
        self._views: set[str] = set()
        self.refresh()

    def title(self) -> str:
        """What is queried, in words."""
        return f"archive '{self._location.name}'"

    def tables(self) -> list[dict[str, Any]]:
        return [*tables(), _TRACES_TABLE]

    def shared_columns(self) -> list[dict[str, str]]:
        """The columns that every table has in addition to its own."""
        return _SHARED_COLUMNS

    @property
    def parts(self) -> list[Part]:
        assert self._seen is not None
        return self._seen

    def refresh(self) -> None:
        """Updates the list of parts."""
        parts = self._location.parts()
        if parts == self._seen:
            return
        for table in self._views:
            self._connection.execute(f"drop view {table}")
        self._seen, self._views = parts, set()

    def _define(self, query: str) -> None:
        """Creates views of the tables that a query may name. Each reads the footers of all its files."""
        names = {str(table["id"]) for table in tables()} | {TRACES}
        for table in names.intersection(re.findall(r"\w+", query.lower())) - self._views:
            files = [self._location.url(f"{part.path}/{table}.parquet") for part in self.parts if table in part.sizes]
            rows = _reading(files) if files else _nothing(table)
            if files and table == TRACES:  # with the columns that parts of earlier versions do not have
                rows += f" union all by name {_nothing(table)}"
            self._connection.execute(f"create view {table} as {rows}")
            self._views.add(table)

    def relation(self, rows: pyarrow.Table) -> duckdb.DuckDBPyRelation:
        return self._connection.from_arrow(rows)

    def close(self) -> None:
        self._connection.close()

    def run(self, text: str) -> Iterator[pyarrow.Table]:
        """Runs the statements of a text one by one. Yields the rows of each statement that has rows."""
        for statement in self._connection.extract_statements(text):
            rows = self._run(statement.query)
            if rows is not None:
                yield rows

    def copy(self, query: str, path: str) -> None:
        """Writes the rows of a query to a file, as a JSON array of objects."""
        list(self.run(f"copy ({query}) to {quoted(path)} (format json, array true)"))

    def rows(self, query: str) -> list[dict[str, object]]:
        (rows,) = self.run(query)
        return list(rows.to_pylist())

    def _run(self, query: str) -> pyarrow.Table | None:
        for tried in range(1, _TRIES + 1):
            self.refresh()
            try:
                self._define(query)
                return fetch(self._connection, query, self)
            except duckdb.IOException:
                if tried == _TRIES or self._location.parts() == self._seen:
                    raise
        raise AssertionError


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _reading(files: list[str]) -> str:
    names = ", ".join(map(quoted, files))
    return (
        f"select * from read_parquet([{names}], union_by_name = true, hive_partitioning = true, "
        "hive_types = {'job': varchar, 'date': date})"
    )


def columns_of(table: str) -> pyarrow.Schema:
    """The columns of a table of an archive; texts without Arrow's dictionary encoding."""
    schema = TRACES_SCHEMA if table == TRACES else schema_of(table)
    fields = [(field.name, plain_type(field.type)) for field in schema if field.name not in WHOSE]
    fields += [(field.name, field.type) for field in TRACES_SCHEMA if field.name in WHOSE]
    return pyarrow.schema([*fields, ("job", pyarrow.utf8()), ("date", pyarrow.date32())])


def _nothing(table: str) -> str:
    columns = ", ".join(f'null::{_kind(field.type)} as "{field.name}"' for field in columns_of(table))
    return f"select {columns} where false"


def _kind(kind: pyarrow.DataType) -> str:
    if pyarrow.types.is_date(kind):
        return "date"
    if pyarrow.types.is_boolean(kind):
        return "boolean"
    if pyarrow.types.is_floating(kind):
        return "double"
    return "bigint" if pyarrow.types.is_integer(kind) else "varchar"
