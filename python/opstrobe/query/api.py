# SPDX-License-Identifier: Apache-2.0
"""`opstrobe.sql`."""

from __future__ import annotations

import contextlib
import os

from opstrobe import _core
from opstrobe.query.database import Database, connect, last_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb


def sql(
    query: str, traces: str | os.PathLike[str] | _core.Trace | Iterable[str | os.PathLike[str] | _core.Trace]
) -> duckdb.DuckDBPyRelation:
    """Runs an SQL query on one trace or many, given as files or objects. Returns the rows of its last statement.

    The tables are those of docs/reference/schema.md, with the additional columns `path` and `rank`. Raises duckdb.Error
    for an invalid query, ValueError or OSError for a file that cannot be read.
    """
    single = isinstance(traces, (str, os.PathLike, _core.Trace))
    database = Database([traces] if single else traces)  # type: ignore[arg-type, list-item]
    with contextlib.closing(database):
        return connect().from_arrow(last_rows(database.run(query)))
