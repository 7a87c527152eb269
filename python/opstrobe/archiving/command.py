# SPDX-License-Identifier: Apache-2.0
"""`opstrobe archive`: keeps traces as Parquet, and shows how metrics change over time."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys

from opstrobe._command_parser import command_parser, examples_text, reason_of
from opstrobe._core import archive_table, format_bytes, format_change, format_duration, format_number
from opstrobe._plain import print_message, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from opstrobe.archiving.database import ArchiveDatabase
    from opstrobe.archiving.trend import Jump, Point

_DESCRIPTION = """\
Keeps traces in an archive: Parquet files in a directory or an object store, LOCATION, which is a path or a URL such as
s3://bucket/profiles (default: $OPSTROBE_ARCHIVE, or the directory opstrobe-archive). DuckDB, Polars and Spark read them
without Opstrobe."""
_EXAMPLES = {
    "add": "archive add profiles traces/ --job llama-70b --commit $(git rev-parse HEAD)",
    "list": "archive list profiles --job llama-70b --limit 10",
    "sql": 'archive sql profiles "select rank, step, sum(dur_ns) from kernels group by all"',
    "trend": "archive trend profiles --metric step_ms --by commit",
    "compact": "archive compact profiles",
    "remove": "archive remove profiles --older-than 90d",
}


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("archive", _DESCRIPTION, tuple(_EXAMPLES.values()))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", epilog=examples_text((_EXAMPLES[name],))
        )
        made.add_argument(
            "location",
            nargs="?",
            metavar="LOCATION",
            help="directory or URL of the archive (default: $OPSTROBE_ARCHIVE, or opstrobe-archive)",
        )
        return made

    add = command("add", "add traces; each is added completely or not at all")
    add.add_argument("traces", nargs="*", metavar="TRACE", help="trace file, or directory with trace files")
    add.add_argument("--job", default="default", metavar="NAME", help="what the traces are of (default: default)")
    add.add_argument(
        "--run",
        metavar="NAME",
        help="one execution of the job (default: what started it says, else ranks recorded together are a run)",
    )
    add.add_argument("--commit", metavar="REVISION", help="revision of the program (default: what the recording says)")
    add.add_argument(
        "--rank", type=int, metavar="N", help="rank of the process (default: what the trace or its file name says)"
    )
    listing = command("list", "list the traces, the newest first")
    listing.add_argument("--job", metavar="NAME", help="of this job only")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="rows, 0 for all (default: 100)")
    listing.add_argument("--format", choices=("text", "csv", "json", "markdown"), default="text", metavar="FORMAT",
                         help="text, csv, json or markdown (default: text)")  # fmt: skip
    sql = command("sql", "answer a question in SQL, or start a shell that does")
    sql.add_argument("query", nargs="?", metavar="QUERY")
    sql.add_argument(
        "--limit", type=int, default=100, metavar="N", help="rows that text shows, 0 for all (default: 100)"
    )
    sql.add_argument("--format", choices=("text", "csv", "json", "markdown"), default="text", metavar="FORMAT",
                     help="text, csv, json or markdown (default: text)")  # fmt: skip
    trend = command("trend", "show how a metric changes, where it jumps, and what explains that")
    trend.add_argument("--metric", default="step_ms", metavar="NAME", help="step_ms (the default), data_loading_ms, kernel_ms, "
                       "collective_ms, operators or peak_mb")  # fmt: skip
    trend.add_argument("--by", default="commit", metavar="GROUP", help="commit (the default), date or run")
    trend.add_argument("--job", metavar="NAME", help="of this job only")
    trend.add_argument(
        "--format", choices=("text", "json"), default="text", metavar="FORMAT", help="text or json (default: text)"
    )
    command("compact", "join small files of a job and a day, and delete what killed writers left")
    remove = command("remove", "remove old traces")
    remove.add_argument("--older-than", required=True, metavar="AGE", help="such as 90d, 12w or 2y")
    remove.add_argument("--job", metavar="NAME", help="of this job only")
    return parser


def _complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Sets the location if it was left out, when the first word is a trace or a query."""
    from opstrobe.archiving.location import default_location, is_archive

    first = options.location
    if options.command == "add":
        if first is None or (not options.traces and is_archive(first)):
            parser.error("no trace given")
        if not options.traces or (os.path.isfile(first) and not is_archive(first)):
            options.location, options.traces = None, [first, *options.traces]
    elif (
        options.command == "sql"
        and first is not None
        and options.query is None
        and " " in first
        and not is_archive(first)
    ):
        options.location, options.query = None, first
    if options.location is None:
        options.location = default_location()


def _say(text: object) -> None:
    print_message("opstrobe archive", text)


def _add(options: argparse.Namespace) -> int:
    from opstrobe.archiving.add import Adder
    from opstrobe.archiving.location import Location, LocationError, check_job
    from opstrobe.query.tables import trace_files

    check_job(options.job)
    location = Location(options.location, create=True)
    adder = Adder(location, options.job, run=options.run, commit=options.commit, rank=options.rank)
    added = there = failed = 0
    for result in adder.add(list(trace_files(options.traces))):
        if isinstance(result, tuple):
            _, is_new = result
            added, there = added + is_new, there + (not is_new)
        elif isinstance(result, (OSError, ValueError)) and not isinstance(result, LocationError):
            failed += 1
            _say(reason_of(result))
        else:
            raise result
    if not added + there + failed:
        _say(f"no trace file in {', '.join(repr(path) for path in options.traces)}")
        return 1
    print(
        f"{added:,} trace{'s' * (added != 1)} added"
        + f", {there:,} already there" * bool(there)
        + f", {failed:,} failed" * bool(failed)
    )
    if adder.undated:
        _say(f"{_undated_text(adder.undated)}; 'dated_by' in the table traces says which date the archive has instead")
    return 1 if failed else 0


def _undated_text(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"'{paths[0]}' does not say when it was recorded"
    return f"'{paths[0]}' and {len(paths) - 1:,} more do not say when they were recorded"


def _query(options: argparse.Namespace, query: str | None) -> int:
    from opstrobe.query import output, shell

    def open_archive(words: Sequence[str]) -> ArchiveDatabase:
        from opstrobe.archiving.database import ArchiveDatabase
        from opstrobe.archiving.location import Location

        if len(words) != 1:
            raise ValueError("several archives cannot be queried together")
        return ArchiveDatabase(Location(words[0]))

    if query is None or shell.is_command(query):
        return shell.run(open_archive, [options.location], options.format, None, options.limit, query)
    with contextlib.closing(open_archive([options.location])) as database:
        output.write(database, query, options.format, None, options.limit)
    return 0


def _list(options: argparse.Namespace) -> int:
    from opstrobe.archiving.answers import trace_rows
    from opstrobe.archiving.database import ArchiveDatabase
    from opstrobe.archiving.location import Location, check_job

    if options.job:
        check_job(options.job)
    with contextlib.closing(ArchiveDatabase(Location(options.location))) as database:
        rows = json.dumps(trace_rows(database, options.job or None))
    width = os.get_terminal_size().columns if sys.stdout.isatty() else 0
    sys.stdout.write(archive_table("archive_traces", rows, options.format, options.limit, width))
    return 0


def _trend(options: argparse.Namespace) -> int:
    from opstrobe.archiving import trend
    from opstrobe.archiving.database import ArchiveDatabase
    from opstrobe.archiving.location import Location, check_job

    if options.job:
        check_job(options.job)
    with contextlib.closing(ArchiveDatabase(Location(options.location))) as database:
        points = trend.series(database, options.metric, options.by, options.job)
        jumps = trend.jumps([point.value for point in points])
        if options.format == "json":
            print(json.dumps({
                "metric": options.metric, "by": options.by, "points": trend.trend_rows(points, jumps),
                "changes": [{**dataclasses.asdict(jump), "key": points[jump.at].key, "change": jump.percent,
                             "causes": trend.cause_rows(database, points, jump)} for jump in jumps],
            }, indent=1))  # fmt: skip
            return 0
        found = [(jump, trend.causes(database, points, jump)) for jump in jumps]
    _print_points(options, points, jumps)
    for jump, causes in found:
        print(f"\n{printable(points[jump.at].key)}: {_change(options.metric, jump)}")
        for cause in causes:
            times = f"{_figure('ms', cause.before_ms):>12} -> {_figure('ms', cause.after_ms):<12}"
            print(f"  {cause.kind:<8}  {times} each step  {printable(cause.name)}")
    return 0


def _figure(metric: str, value: float) -> str:
    """A value of a metric, whose name ends in its unit."""
    if metric.endswith("ms"):
        return format_duration(value * 1e6)
    return format_bytes(int(value * 1e6)) if metric.endswith("mb") else format_number(value)


def _print_points(options: argparse.Namespace, points: Sequence[Point], jumps: Sequence[Jump]) -> None:
    if not points:
        hint = "; '--by date' also shows traces without one" if options.by == "commit" else ""
        source = " (opstrobe run --memory records it)" if options.metric == "peak_mb" else ""
        print(f"no trace has {options.metric}{source} and a {options.by}{hint}")
        return
    starts = {jump.at: jump for jump in jumps}
    width = max(len(options.by), *(len(point.key) for point in points))
    print(f"{options.by:<{width}}  {options.metric:>9}  traces")
    for i, point in enumerate(points):
        print(
            f"{printable(point.key):<{width}}  {_figure(options.metric, point.value):>{max(9, len(options.metric))}}  {len(point.traces):6,}"
            + ("  <- " + _change(options.metric, starts[i]) if i in starts else "")
        )
    if not jumps:
        print("no change that exceeds the noise")


def _change(metric: str, jump: Jump) -> str:
    percent = "" if jump.percent is None else f" ({format_change(jump.percent)})"
    before, after, noise = (_figure(metric, value) for value in (jump.before, jump.after, jump.noise))
    return f"{before} -> {after}{percent}, noise {noise}"


def _compact(options: argparse.Namespace) -> int:
    from opstrobe.archiving import compact
    from opstrobe.archiving.location import Location

    before, after = compact.compact(Location(options.location))
    print(f"{before:,} parts before, {after:,} after")
    return 0


def _remove(options: argparse.Namespace) -> int:
    from opstrobe.archiving import compact
    from opstrobe.archiving.location import Location

    age = compact.parse_age(options.older_than)
    print(f"{compact.remove(Location(options.location), older_than=age, job=options.job)} parts removed")
    return 0


def main() -> None:
    # Started by `opstrobe serve`; not listed.
    if len(sys.argv) == 3 and sys.argv[1] == "answer":
        options = argparse.Namespace(command="answer", location=sys.argv[2])
    else:
        parser = _parser()
        options = parser.parse_args()
    try:
        from opstrobe.archiving import packages  # noqa: F401

        if options.command != "answer":
            _complete(parser, options)
        if options.command == "answer":
            from opstrobe.archiving import answers

            answers.run(options.location)
            status = 0
        elif options.command == "sql":
            status = _query(options, options.query)
        else:
            status = {"add": _add, "list": _list, "trend": _trend, "compact": _compact, "remove": _remove}[
                options.command
            ](options)
    except ImportError as error:
        _say(error)
        status = 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = 130  # as shells have it for Ctrl-C
    except (OSError, ValueError) as error:
        _say(reason_of(error))
        status = 1
    except Exception as error:
        if type(error).__module__ == "builtins":
            raise  # else it is an error of DuckDB or of the client of an object store
        _say(error)
        status = 1
    raise SystemExit(status)


if __name__ == "__main__":
    main()
