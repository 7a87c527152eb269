# SPDX-License-Identifier: Apache-2.0
"""Archives of traces: Parquet in a directory or an object store.

opstrobe.archive.add("s3://bucket/profiles", ["rank0.json.gz", "rank1.json.gz"], job="llama-70b")
opstrobe.archive.sql("s3://bucket/profiles", "select rank, count(*) from kernels group by 1").df()
"""

from __future__ import annotations

import contextlib

from opstrobe.archiving.add import Adder
from opstrobe.archiving.database import ArchiveDatabase
from opstrobe.archiving.location import Location, check_job
from opstrobe.archiving.location import is_archive as is_archive
from opstrobe.query.database import connect, last_rows
from opstrobe.query.tables import trace_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import duckdb


def add(
    location: str | os.PathLike[str],
    traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    job: str = "default",
    run: str | None = None,
    commit: str | None = None,
    rank: int | None = None,
) -> list[str]:
    """Adds trace files, each completely or not at all. Returns the ids of those that were new.

    `run` and `commit` default to those of the recording, `rank` to that of the trace or of its file's name. Ranks without a run
    that were recorded together are one run.
    """
    check_job(job)
    place = Location(location, create=True)
    paths = [traces] if isinstance(traces, str) or hasattr(traces, "__fspath__") else traces
    files = trace_files(str(path) for path in paths)
    added = []
    for result in Adder(place, job, run=run, commit=commit, rank=rank).add(list(files)):
        if isinstance(result, Exception):
            raise result
        added.append(result)
    return [name for name, is_new in added if is_new]


def sql(location: str | os.PathLike[str], query: str) -> duckdb.DuckDBPyRelation:
    """Runs an SQL query on an archive. Returns the rows of its last statement."""
    with contextlib.closing(ArchiveDatabase(Location(location))) as database:
        return connect().from_arrow(last_rows(database.run(query)))
