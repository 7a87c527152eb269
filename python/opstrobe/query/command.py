# SPDX-License-Identifier: Apache-2.0
"""`opstrobe sql`: SQL queries about traces."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from opstrobe import _core
from opstrobe._command_parser import command_parser, reason_of
from opstrobe._plain import print_message

_DESCRIPTION = """\
Runs SQL queries on traces. Without a query, reads them from standard input, on a terminal with a prompt. Tables are
events, kernels, steps, memory, modules, lines and others; --schema lists them with their columns. Times are in
nanoseconds. Several traces are one set of tables, whose columns path and rank say which trace a row is from. DuckDB runs
the queries: its SQL and its functions can be used.

A TRACE is a file, a directory of traces, a quoted pattern, or - for standard input. An ARCHIVE is a directory or URL that
'opstrobe archive add' has written to."""
_EXAMPLES = (
    'sql "select name, sum(dur_ns) from events group by 1 order by 2 desc" train.json.gz',
    'sql "select rank, median(dur_ns) / 1e6 as ms from steps group by 1" rank*.json.gz',
    "sql train.json.gz",
    'sql ".schema events"',
    "sql --format csv train.json.gz < queries.sql",
)

_INTERRUPTED = 130  # exit status, as shells have it for Ctrl-C
_FORMATS = ("text", "csv", "json", "markdown", "parquet")


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("sql", _DESCRIPTION, _EXAMPLES, "opstrobe sql [options] [QUERY] [TRACE... | ARCHIVE]")
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--format", choices=_FORMATS, metavar="FORMAT", help=f"{', '.join(_FORMATS)} (default: text)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE; the end of its name selects the format")
    parser.add_argument(
        "--limit", metavar="N", type=int, default=100, help="rows that text shows, 0 for all (default: 100)"
    )
    parser.add_argument("--schema", action="store_true", help="list the tables, or the columns of the tables named")
    return parser


def _fail(reason: object) -> int:
    print_message("opstrobe sql", reason)
    return 1


def _warn_of(path: str, trace: _core.Trace) -> None:
    for diagnostic in trace.diagnostics():
        print_message("opstrobe sql", f"{path}: {diagnostic['message']}")


def _format_of(options: argparse.Namespace) -> str:
    if options.format:
        return str(options.format)
    end = os.path.splitext(options.output or "")[1][1:]
    end = {"md": "markdown", "txt": "text"}.get(end, end)
    return end if end in _FORMATS else "text"


def _print_schema(words: list[str]) -> int:
    from opstrobe.query import schema

    try:
        return schema.print_schema(words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run_without_queries(missing: ImportError, options: argparse.Namespace) -> int:
    """The shell shows the schema, and says for each query what to install."""
    from opstrobe.query import schema, shell

    tables = schema.OnlyDeclared(missing)
    words = list(options.arguments)
    command = words[0] if words else None
    return shell.run(lambda words: tables, (), _format_of(options), options.output, options.limit, command)


def main() -> None:
    try:
        _run_command()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


def _run_command() -> None:
    parser = _parser()
    options = parser.parse_args()
    if options.schema:
        raise SystemExit(_print_schema(options.arguments))
    from opstrobe.query import shell  # needs no other package

    try:
        from opstrobe.query import database, output, sources
    except ImportError as error:
        if options.arguments and not shell.is_command(options.arguments[0]):
            raise SystemExit(_fail(error)) from None
        raise SystemExit(_run_without_queries(error, options)) from None
    words = list(options.arguments)
    query = words.pop(0) if words and not sources.is_source(words[0]) else None
    command = query if query is not None and shell.is_command(query) else None
    query = None if command is not None else query
    if query is not None and not any(letter.isspace() for letter in query):
        parser.error(f"'{query}' is neither a query nor a file")
    if query is not None and not words:
        parser.error("no trace is named")
    if options.format == "parquet" and not options.output:
        parser.error("--format parquet needs --output FILE")
    if query is None and command is None and "-" in words:
        parser.error("'-' needs a query: standard input is the trace")
    if options.output and sources.selects(words, options.output):
        parser.error(f"the output '{options.output}' is the input itself; give another name")
    form = _format_of(options)
    try:
        if query is None:
            raise SystemExit(
                shell.run(
                    lambda words: sources.open_sources(words, on_read=_warn_of),
                    words,
                    form,
                    options.output,
                    options.limit,
                    command,
                )
            )
        with contextlib.closing(sources.open_sources(words, on_read=_warn_of)) as traces:
            output.write(traces, query, form, options.output, options.limit)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ImportError as error:
        raise SystemExit(_fail(error)) from None
    except (OSError, ValueError, database.duckdb.Error) as error:
        if "Broken pipe" in str(error):  # the reader has closed the pipe
            raise SystemExit(0) from None
        raise SystemExit(_fail(reason_of(error))) from None


if __name__ == "__main__":
    main()
