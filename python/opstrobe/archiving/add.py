# SPDX-License-Identifier: Apache-2.0
"""Adding traces to an archive."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import time

from opstrobe import _core
from opstrobe.archiving.location import TRACES, Location
from opstrobe.archiving.packages import pyarrow
from opstrobe.archiving.runs import Runs, rank_of
from opstrobe.query.schema import tables
from opstrobe.query.tables import constant, plain_type, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Small enough that a query for a few steps reads little of a file.
_GROUP_ROWS = 1 << 15
# Columns whose values are close to those of the previous row.
_NEAR = {"id", "start_ns", "time_ns", "external_id", "from_id", "to_id"}
_ORDER = ("pid", "tid", "device", "stream", "start_ns", "time_ns")
# Columns that every table has in addition: the trace that a row belongs to.
WHOSE = ("path", "rank", "trace", "run", "commit")

TRACES_SCHEMA = pyarrow.schema(
    [
        *((name, pyarrow.int64() if name == "rank" else pyarrow.utf8()) for name in WHOSE),
        ("start_ns", pyarrow.int64()),
        ("dur_ns", pyarrow.int64()),
        ("added_ns", pyarrow.int64()),
        ("source_bytes", pyarrow.int64()),
        ("schema", pyarrow.utf8()),
    ]
)


@functools.cache
def schema_version() -> str:
    """A hash of the tables and their columns: equal for files with equal columns."""
    text = ";".join(f"{table['id']}:{schema_of(str(table['id']))}" for table in tables())
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def add(
    location: Location,
    path: str,
    known: set[str],
    runs: Runs,
    *,
    run: str | None = None,
    commit: str | None = None,
    rank: int | None = None,
) -> tuple[str, bool]:
    """Adds a trace file to the job of `runs`, unless its id is in `known`. Returns the id, and whether the file was added. The id
    is derived from the bytes of the file."""
    name = digest(path)
    if name in known:
        return name, False
    trace = _core.read_trace(path)
    about = _about(trace)
    date = datetime.datetime.fromtimestamp(_time_of(trace, path), datetime.timezone.utc).date()
    path = os.path.abspath(path)
    rank = trace.rank(path) if rank is None else rank
    of_job = rank_of(trace, path, rank)
    run = run or about["run"] or runs.find(of_job, date) or name
    whose: dict[str, int | str | None] = {
        "path": path,
        "rank": rank,
        "trace": name,
        "run": run,
        "commit": commit or about["commit"],
    }
    is_new = location.write(runs.job, date.isoformat(), name, functools.partial(_fill, trace, whose))
    runs.add(run, of_job)
    return name, is_new


def digest(path: str) -> str:
    digest = hashlib.blake2b(digest_size=10)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _about(trace: _core.Trace) -> dict[str, str | None]:
    """The run and commit in the recording's metadata."""
    metadata = trace.metadata()

    def value(key: str) -> object:
        try:
            return json.loads(metadata.get(key, "null"))
        except ValueError:
            return None

    recording, run = value("recording"), value("job")
    commit = recording.get("git_revision") if isinstance(recording, dict) else None
    return {"commit": commit if isinstance(commit, str) else None, "run": run if isinstance(run, str) else None}


def _time_of(trace: _core.Trace, path: str) -> float:
    """Seconds since the epoch. Old traces have the time since the machine started."""
    start = trace.start_ns / 1e9
    return start if start > 1e9 else os.path.getmtime(path)


def _fill(trace: _core.Trace, whose: Mapping[str, int | str | None], folder: str) -> None:
    for declared in tables():
        table = str(declared["id"])
        rows = pyarrow.Table.from_batches([pyarrow.RecordBatch._import_from_c_capsule(*trace.table(table, None))])
        if rows.num_rows:
            order = [(name, "ascending") for name in _ORDER if name in rows.schema.names]
            rows = rows.sort_by(order) if order else rows
            with writer(folder, table, rows.schema) as file:
                file.write_table(_with_whose(rows, whose), row_group_size=_GROUP_ROWS)
    start_ns, stop_ns = trace.start_ns, trace.stop_ns
    row: dict[str, int | str | None] = {
        **whose,
        "start_ns": start_ns,
        "dur_ns": stop_ns - start_ns,
        "added_ns": time.time_ns(),
        "source_bytes": os.path.getsize(str(whose["path"])),
        "schema": schema_version(),
    }
    # Not Table.from_pylist(), which imports pandas.
    columns = [constant(row[field.name], field.type, 1) for field in TRACES_SCHEMA]
    write_traces(folder, pyarrow.Table.from_arrays(columns, TRACES_SCHEMA.names).cast(TRACES_SCHEMA))


def _with_whose(rows: pyarrow.Table, whose: Mapping[str, int | str | None]) -> pyarrow.Table:
    for field in _WHOSE_FIELDS:
        rows = rows.append_column(field.name, constant(whose[field.name], field.type, rows.num_rows))
    return rows


_WHOSE_FIELDS = [TRACES_SCHEMA.field(name) for name in WHOSE]


def write_traces(folder: str, rows: pyarrow.Table) -> None:
    pyarrow.parquet.write_table(rows, os.path.join(folder, f"{TRACES}.parquet"), compression="zstd", store_schema=False)


class writer:
    """A file of a table, with the columns in `WHOSE` in addition to those of its schema."""

    def __init__(self, folder: str, table: str, schema: pyarrow.Schema) -> None:
        fields = [field if field.name not in WHOSE else None for field in schema]
        plain = [
            pyarrow.field(field.name, plain_type(field.type), field.nullable) for field in fields if field is not None
        ]
        texts = [field.name for field in [*plain, *_WHOSE_FIELDS] if _is_text(field.type)]
        near = [field.name for field in plain if field.name in _NEAR]
        self._schema = pyarrow.schema([*plain, *_WHOSE_FIELDS])
        self._file = pyarrow.parquet.ParquetWriter(
            os.path.join(folder, f"{table}.parquet"),
            self._schema,
            compression="zstd",
            compression_level=9,
            use_dictionary=texts,
            column_encoding={name: "DELTA_BINARY_PACKED" for name in near},
            store_schema=False,
        )

    def __enter__(self) -> writer:
        return self

    def write_table(self, rows: pyarrow.Table, *, row_group_size: int = _GROUP_ROWS) -> None:
        self._file.write_table(rows.select(self._schema.names).cast(self._schema), row_group_size=row_group_size)

    def __exit__(self, *unused: object) -> None:
        self._file.close()


def _is_text(kind: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))
