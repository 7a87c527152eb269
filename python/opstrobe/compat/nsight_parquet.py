# SPDX-License-Identifier: Apache-2.0
"""Directories of Parquet files that Nsight Systems exports (`nsys export --type parquetdir`): the tables of its SQLite export, a file each."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

_ENDING = ".parquet"


def is_export(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(os.path.join(path, "StringIds" + _ENDING))


def read_export(folder: str | os.PathLike[str], *, progress: Callable[[int, int], object] | None = None) -> _core.Trace:
    """Reads the directory by way of a temporary SQLite database, so that one reader defines what the tables mean.

    Raises ImportError without pyarrow, ValueError if a file is not valid.
    """
    with tempfile.TemporaryDirectory(prefix="opstrobe-") as staging:
        path = os.path.join(staging, os.path.basename(os.path.normpath(folder)) + ".sqlite")
        _write_database(os.fspath(folder), path)
        return _core.read_trace(path, progress=progress)


def _write_database(folder: str, path: str) -> None:
    import contextlib
    import sqlite3

    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("pragma synchronous = off")
        database.execute("pragma journal_mode = off")
        for name in sorted(os.listdir(folder)):
            if name.endswith(_ENDING):
                _copy_table(database, os.path.join(folder, name), name[: -len(_ENDING)])
        database.commit()


def _copy_table(database: Connection, path: str, table: str) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"a Parquet export of Nsight Systems needs {error.name}: pip install 'opstrobe[sql]'", name=error.name
        ) from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            database.execute(f"create table {_quoted(table)} ({', '.join(map(_quoted, names))})")
            row = ", ".join("?" * len(names))
            for batch in file.iter_batches():
                columns = [map(_cell, column.to_pylist()) for column in batch.columns]
                database.executemany(f"insert into {_quoted(table)} values ({row})", zip(*columns))
    except pyarrow.ArrowException as error:
        raise ValueError(f"cannot read '{path}': {error}") from error


def _cell(value: Any) -> Any:
    """A value that SQLite can hold. Its integers have 64 bits and a sign."""
    if isinstance(value, int):
        return value - (1 << 64) if value >= 1 << 63 else int(value)
    return value if value is None or isinstance(value, (float, str, bytes)) else str(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
