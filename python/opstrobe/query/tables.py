# SPDX-License-Identifier: Apache-2.0
"""The tables of a trace as Arrow: their schemas, with the columns `path` and `rank`, and their rows."""

from __future__ import annotations

import array
import functools
import os
import struct

from opstrobe import _core
from opstrobe.query.schema import TRACE_COLUMNS

try:
    import pyarrow
except ImportError as error:
    raise ImportError(f"SQL needs {error.name}: pip install 'opstrobe[sql]'", name=error.name) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opstrobe.archiving.location import Location

# Rows per batch. There are several batches, so that all threads of a query have work.
_BATCH_ROWS = 1 << 17
# Suffixes of trace files in directories.
_ENDINGS = (".json", ".json.gz", ".json.zst", ".pftrace", ".pftrace.gz", ".oprec")

_PATH, _RANK = (
    pyarrow.field(column["name"], kind, metadata={"meaning": column["about"]})
    for column, kind in zip(TRACE_COLUMNS, (pyarrow.dictionary(pyarrow.int8(), pyarrow.utf8()), pyarrow.int64()))
)


def schema_of(table: str) -> pyarrow.Schema:
    empty = pyarrow.RecordBatch._import_from_c_capsule(*_core.parse_trace(b"[]").table(table))
    return empty.schema.append(_PATH).append(_RANK)


def read_rows(
    trace: _core.Trace, table: str, path: str, schema: pyarrow.Schema, columns: Iterable[str] | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """Yields the rows of a table of a trace, with `schema_of(table)`. If `columns` is given, all other columns are
    null."""
    wanted = [name for name in schema.names[:-2] if columns is None or name in columns]
    batch = pyarrow.RecordBatch._import_from_c_capsule(*trace.table(table, wanted))
    complete = _complete(schema, batch, path, trace.rank(path))
    return (complete.slice(start, _BATCH_ROWS) for start in range(0, complete.num_rows, _BATCH_ROWS))


def archive_at(path: str) -> Location | None:
    """The archive at a path or URL; None if something else is there. Traces in a directory do not need the packages of archives."""
    try:
        from opstrobe.archiving.location import find_archive
    except ImportError:
        if "://" in path or os.path.isfile(os.path.join(path, "_opstrobe.json")):
            raise
        return None
    return find_archive(path)


def is_trace_name(path: str) -> bool:
    """Returns whether a file in a directory is a trace, by its name."""
    name = path.rpartition("/")[2]
    return name.endswith(_ENDINGS) and name[0] not in "._"


def trace_files(paths: Iterable[str]) -> Iterator[str]:
    """Yields the files, and the trace files in directories and below them."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            yield from (os.path.join(folder, name) for name in sorted(names) if is_trace_name(name))


def _complete(schema: pyarrow.Schema, batch: pyarrow.RecordBatch, path: str, rank: int | None) -> pyarrow.RecordBatch:
    rows = batch.num_rows
    read = dict(zip(batch.schema.names, batch.columns))
    arrays = [read[field.name] if field.name in read else _nulls(rows, field.type) for field in list(schema)[:-2]]
    arrays += [constant(path, _PATH.type, rows), constant(rank, _RANK.type, rows)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


# These make arrays of buffers, because pyarrow.array() and pyarrow.scalar() import pandas, which takes longer than most queries.


@functools.lru_cache(maxsize=1)
def _zeros_of(size: int) -> pyarrow.Buffer:
    return pyarrow.py_buffer(bytes(size))


def _zeros(size: int) -> pyarrow.Buffer:
    """A buffer of at least this size, which columns and traces share."""
    return _zeros_of((size | 0xFFFFF) + 1)


def _nulls(rows: int, kind: pyarrow.DataType) -> pyarrow.Array:
    """Nulls that share one buffer. pyarrow.nulls() allocates one for each column, which in sum is more than the trace."""
    zeros = _zeros(8 * rows + 8)
    if pyarrow.types.is_dictionary(kind):
        nothing = pyarrow.Array.from_buffers(kind.value_type, 0, [None, zeros, zeros], 0)
        return pyarrow.DictionaryArray.from_arrays(_nulls(rows, kind.index_type), nothing)
    is_text = pyarrow.types.is_large_string(kind) or pyarrow.types.is_string(kind)
    return pyarrow.Array.from_buffers(kind, rows, [zeros, zeros, zeros] if is_text else [zeros, zeros], rows)


def _one_text(text: str) -> pyarrow.Array:
    value = text.encode(errors="replace")
    offsets = pyarrow.py_buffer(struct.pack("=ii", 0, len(value)))
    return pyarrow.Array.from_buffers(pyarrow.utf8(), 1, [None, offsets, pyarrow.py_buffer(value)], 0)


def _repeated(value: int, rows: int) -> pyarrow.Array:
    return pyarrow.Array.from_buffers(
        pyarrow.int64(), rows, [None, pyarrow.py_buffer(array.array("q", [value]) * rows)], 0
    )


def constant(value: int | str | None, kind: pyarrow.DataType, rows: int) -> pyarrow.Array:
    """Equal values. Texts are a dictionary with one entry."""
    if value is None:
        return _nulls(rows, kind)
    if isinstance(value, int):
        return _repeated(value, rows)
    zeros = pyarrow.Array.from_buffers(pyarrow.int8(), rows, [None, _zeros(rows)], 0)
    return pyarrow.DictionaryArray.from_arrays(zeros, _one_text(value))


def plain_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Texts without Arrow's dictionary encoding, since Parquet and Spark have their own encodings."""
    return pyarrow.utf8() if pyarrow.types.is_dictionary(kind) or pyarrow.types.is_large_string(kind) else kind
