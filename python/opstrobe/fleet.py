# SPDX-License-Identifier: Apache-2.0
"""Analyses of many traces, or of an archive, from one definition for DuckDB on one machine and Spark on many:

opstrobe.fleet.analyze("steps", "traces/").to_pandas()
opstrobe.fleet.analyze("kernels", "s3://bucket/profiles", spark=spark)
"""

from __future__ import annotations

import contextlib
import os
import re

from opstrobe.query.schema import tables
from opstrobe.query.tables import archive_at, trace_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow
    from pyspark.sql import SparkSession

# By name: a description, and a query that both DuckDB and Spark support. Traces are those of one job.
_ANALYSES = {
    "steps": (
        "number, median and longest time of the steps of each rank",
        "select rank, count(*) as steps, median(dur_ns) / 1e6 as median_ms, max(dur_ns) / 1e6 as longest_ms from steps "
        "group by rank order by rank",
    ),
    "stragglers": (
        "ranks that others wait for: in how many steps a rank spends the least time in collectives, and how much more the others spend",
        "with spent as (select rank, step, sum(dur_ns) as ns from collectives where step is not null and rank is not null "
        "group by rank, step), "
        "of_step as (select step, min_by(rank, ns) as rank, max(ns) - min(ns) as waited from spent group by step having count(*) > 1) "
        "select rank, count(*) as steps, sum(waited) / 1e6 as waited_ms from of_step group by rank order by waited_ms desc, rank",
    ),
    "kernels": (
        "kernels, memory copies and memory sets by name",
        "select name, work, count(*) as calls, sum(dur_ns) / 1e6 as total_ms, median(dur_ns) / 1e3 as median_us from kernels "
        "group by name, work order by total_ms desc, name",
    ),
    "collectives": (
        "collective operations by name and message size",
        "select name, message_bytes, count(*) as calls, sum(dur_ns) / 1e6 as total_ms, "
        "sum(bus_bytes) / nullif(sum(dur_ns), 0) as bus_gb_per_s "
        "from collectives group by name, message_bytes order by total_ms desc, name, message_bytes",
    ),
    "findings": (
        "rules of advice by the number of traces in which they apply",
        "select rule, title, count(distinct path) as traces, median(gain_percent) as median_gain_percent, "
        "max(gain_percent) as largest_gain_percent from findings group by rule, title order by traces desc, rule",
    ),
    "trend": (
        "median time of a step in each trace, in order of their starts",
        "select path, rank, min(start_ns) as start_ns, median(dur_ns) / 1e6 as median_ms from steps "
        "group by path, rank order by start_ns, path",
    ),
}


def analyses() -> dict[str, str]:
    """The names of the analyses, each with a description."""
    return {name: about for name, (about, _) in _ANALYSES.items()}


def analyze(
    name: str, traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, spark: SparkSession | None = None
) -> pyarrow.Table:
    """The rows of an analysis of trace files, directories of them, or an archive; with a Spark session, its executors
    read them.

    Raises ValueError for an unknown analysis.
    """
    if name not in _ANALYSES:
        raise ValueError(f"invalid analysis '{name}' (choose from {', '.join(_ANALYSES)})")
    paths = [os.fspath(path) for path in ([traces] if isinstance(traces, (str, os.PathLike)) else traces)]
    query = _ANALYSES[name][1]
    return _on_one_machine(query, paths) if spark is None else _on_spark(query, paths, spark)


def _on_one_machine(query: str, paths: list[str]) -> pyarrow.Table:
    from opstrobe.query.database import Database, last_rows

    place = archive_at(paths[0]) if len(paths) == 1 else None
    if place is not None:
        from opstrobe.archiving.database import ArchiveDatabase

        with contextlib.closing(ArchiveDatabase(place)) as archive:
            return last_rows(archive.run(query))
    remote = [path for path in paths if "://" in path]
    if remote:
        raise FileNotFoundError(
            f"'{remote[0]}' is not an archive, and one machine reads traces from directories only: "
            "copy them, or pass a Spark session, whose executors fetch them"
        )
    with contextlib.closing(Database(trace_files(paths))) as database:
        return last_rows(database.run(query))


def _on_spark(query: str, paths: list[str], spark: SparkSession) -> pyarrow.Table:
    words = set(re.findall(r"\w+", query))
    for table in {str(declared["id"]) for declared in tables()} & words:
        pushdown = spark.conf.get("spark.sql.python.filterPushdown.enabled", "false")
        reader = spark.read.format("opstrobe").option("table", table).option("pushdown", str(pushdown))
        rows = reader.load("\n".join(paths))
        rows.createOrReplaceTempView(table)
    return spark.sql(query).toArrow()
