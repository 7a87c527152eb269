# SPDX-License-Identifier: Apache-2.0
"""Adding traces to an archive."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from opstrobe import _core
from opstrobe.archiving.location import TRACES, Location
from opstrobe.archiving.packages import pyarrow
from opstrobe.archiving.runs import Runs, rank_of
from opstrobe.query.schema import tables
from opstrobe.query.tables import constant, plain_type, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Traces that are added at the same time are together at most this large, as JSON; larger ones are added one by one.
_TOGETHER_BYTES = 1 << 30
# Typical size of JSON per byte of a compressed file.
_COMPRESSION = 15
# Earlier times are not since the Unix epoch, but since the machine started, or 0 where a format has none. Files of such a
# time come from tools that set all times to the same.
_EARLIEST_S = 1e9
# Columns of facts that identify a trace, however its file is named, compressed or laid out.
_CONTENT = {
    "events": ("start_ns", "dur_ns", "pid", "tid", "category", "name"),
    "memory": ("time_ns", "address", "bytes"),
    "counters": ("time_ns", "name", "series", "value"),
    "ranks": ("world_size",),
}
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
        ("file", pyarrow.utf8()),
        ("dated_by", pyarrow.utf8()),
    ]
)


@functools.cache
def schema_version() -> str:
    """A hash of the tables and their columns: equal for files with equal columns."""
    text = ";".join(f"{table['id']}:{schema_of(str(table['id']))}" for table in tables())
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


class Adder:
    """Adds trace files to a job of an archive, several at a time. `run`, `commit` and `rank` replace what the traces say."""

    def __init__(
        self,
        location: Location,
        job: str,
        *,
        run: str | None = None,
        commit: str | None = None,
        rank: int | None = None,
    ) -> None:
        self._location = location
        self._known = location.names(job)
        self._known_files = location.files_of(job)
        self._undated: list[str] = []
        self._runs = Runs(location, job)
        self._run, self._commit, self._rank = run, commit, rank

    @property
    def undated(self) -> list[str]:
        """The files that were added and do not say when they were recorded."""
        return sorted(self._undated)

    def add(self, paths: Sequence[str]) -> Iterator[tuple[str, bool] | Exception]:
        """Yields, in the order of the paths, the id of a trace, which is derived from its events, and whether it is new;
        or the error. Traces are not started after the caller has stopped."""
        with ThreadPoolExecutor(_threads(paths)) as threads:
            # A trace's run depends on the traces before it, so each waits until they have theirs.
            turns = [threading.Event() for _ in range(len(paths) + 1)]
            turns[0].set()
            futures = [threads.submit(self._add_in_turn, *each) for each in zip(paths, turns, turns[1:])]
            try:
                for future in futures:
                    error = future.exception()
                    yield error if isinstance(error, Exception) else future.result()
            finally:
                threads.shutdown(cancel_futures=True)

    def _add_in_turn(self, path: str, begin: threading.Event, end: threading.Event) -> tuple[str, bool]:
        try:
            return self._add(path, begin, end)
        finally:
            begin.wait()
            end.set()

    def _add(self, path: str, begin: threading.Event, end: threading.Event) -> tuple[str, bool]:
        file = digest(path)
        if file in self._known_files:
            return self._known_files[file], False
        trace = _core.read_trace(path)
        about = _about(trace)
        seconds, dated_by = _time_of(trace, path)
        date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).date()
        path = os.path.abspath(path)
        rank = trace.rank(path) if self._rank is None else self._rank
        of_job = rank_of(trace, path, rank)
        name = _content(trace, rank) or file
        begin.wait()
        if name in self._known:
            return name, False
        self._known.add(name)
        run = self._run or about["run"] or self._runs.find(of_job, date) or name
        self._runs.add(run, of_job)
        end.set()
        whose: dict[str, int | str | None] = {
            "path": path,
            "rank": rank,
            "trace": name,
            "run": run,
            "commit": self._commit or about["commit"],
        }
        if dated_by != "recording":
            self._undated.append(path)
        fill = functools.partial(_fill, trace, whose, file, dated_by)
        return name, self._location.write(self._runs.job, date.isoformat(), name, fill, file=file)


def _threads(paths: Sequence[str]) -> int:
    """As many as there are processors, but fewer for large traces, so that the memory is bounded."""
    largest = max(map(_json_bytes, paths), default=0)
    return max(1, min(os.cpu_count() or 1, len(paths), _TOGETHER_BYTES // max(1, largest)))


def _json_bytes(path: str) -> int:
    try:
        return os.path.getsize(path) * (_COMPRESSION if path.endswith((".gz", ".zst")) else 1)
    except OSError:
        return 0


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


def _time_of(trace: _core.Trace, path: str) -> tuple[float, str]:
    """Seconds since the epoch, and what says so: the recording, the file, or that it is added now."""
    for seconds, dated_by in ((trace.start_ns / 1e9, "recording"), (os.path.getmtime(path), "file")):
        if seconds > _EARLIEST_S:
            return seconds, dated_by
    return time.time(), "added"


def _content(trace: _core.Trace, rank: int | None) -> str | None:
    """A hash of what was recorded; None if the trace is empty."""
    digest = hashlib.blake2b(repr(rank).encode(), digest_size=10)
    count = 0
    for table, names in _CONTENT.items():
        batch = pyarrow.RecordBatch._import_from_c_capsule(*trace.table(table, list(names)))
        count += batch.num_rows if table != "ranks" else 0
        digest.update(b"%d" % batch.num_rows)
        for column in batch.columns:
            for buffer in _values(column):
                digest.update(buffer)
    return digest.hexdigest() if count else None


def _values(column: pyarrow.Array) -> Iterator[memoryview]:
    """The bytes of a column. Those of absent values are undefined, so these are replaced."""
    column = column.cast(plain_type(column.type))
    yield memoryview(column.is_null().cast(pyarrow.uint8()).buffers()[1])[: len(column)]
    if column.null_count:
        column = column.fill_null("" if pyarrow.types.is_string(column.type) else 0)
    if not pyarrow.types.is_string(column.type):
        yield memoryview(column.buffers()[1])[: len(column) * column.type.bit_width // 8]
        return
    _, offsets, letters = column.buffers()
    ends = memoryview(offsets).cast("i")[: len(column) + 1]
    yield ends.cast("B")
    if letters is not None:
        yield memoryview(letters)[: ends[len(column)]]


def _fill(trace: _core.Trace, whose: Mapping[str, int | str | None], file: str, dated_by: str, folder: str) -> None:
    for declared in tables():
        table = str(declared["id"])
        rows = pyarrow.Table.from_batches([pyarrow.RecordBatch._import_from_c_capsule(*trace.table(table, None))])
        if rows.num_rows:
            order = [(name, "ascending") for name in _ORDER if name in rows.schema.names]
            rows = rows.sort_by(order) if order else rows
            with writer(folder, table, rows.schema) as out:
                out.write_table(_with_whose(rows, whose), row_group_size=_GROUP_ROWS)
    start_ns, stop_ns = trace.start_ns, trace.stop_ns
    row: dict[str, int | str | None] = {
        **whose,
        "start_ns": start_ns,
        "dur_ns": stop_ns - start_ns,
        "added_ns": time.time_ns(),
        "source_bytes": os.path.getsize(str(whose["path"])),
        "schema": schema_version(),
        "file": file,
        "dated_by": dated_by,
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
        from opstrobe.archiving.packages import parquet

        self._file = parquet.ParquetWriter(
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
