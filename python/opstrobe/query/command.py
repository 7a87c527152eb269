# SPDX-License-Identifier: Apache-2.0
"""`opstrobe sql`: SQL queries about traces."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from opstrobe import _core
from opstrobe._command_parser import command_parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.archiving.database import ArchiveDatabase
    from opstrobe.query.database import Database

_DESCRIPTION = """\
Answers a question in SQL about traces, or starts a shell that does. Tables are events, kernels, steps, memory, modules,
lines and others; --schema lists them with their columns. Times are in nanoseconds. Several traces are one set of tables,
whose columns path and rank say which trace a row is from. DuckDB does the work: its SQL and its functions can be used.

  opstrobe sql "select name, sum(dur_ns) from events group by 1 order by 2 desc limit 10" train.pt.trace.json.gz
  opstrobe sql "select rank, median(dur_ns) / 1e6 as ms from steps group by 1" rank*.json.gz
  opstrobe sql train.pt.trace.json.gz

Instead of traces an archive can be named: a directory or URL that 'opstrobe archive add' has written to."""

_FORMATS = ("text", "csv", "json", "markdown", "parquet")


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("sql", _DESCRIPTION, "opstrobe sql [options] [QUERY] [TRACE... | ARCHIVE]")
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--format", choices=_FORMATS, metavar="FORMAT", help=f"{', '.join(_FORMATS)} (default: text)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE; the end of its name selects the format")
    parser.add_argument(
        "--limit", metavar="N", type=int, default=100, help="rows that text shows, 0 for all (default: 100)"
    )
    parser.add_argument("--schema", action="store_true", help="list the tables, or the columns of the tables named")
    return parser


def _fail(reason: object) -> int:
    print(f"opstrobe sql: {reason}", file=sys.stderr)
    return 1


def _warn_of(path: str, trace: _core.Trace) -> None:
    for diagnostic in trace.diagnostics():
        print(f"opstrobe sql: {path}: {diagnostic['message']}", file=sys.stderr)


def _is_url(word: str) -> bool:
    return "://" in word and not any(letter.isspace() for letter in word)


def _open(words: list[str]) -> Database | ArchiveDatabase:
    from opstrobe.query.database import Database

    archives = [word for word in words if _is_url(word) or os.path.isdir(word)]
    if not archives:
        return Database(words, on_read=_warn_of)
    if len(words) > 1:
        raise ValueError(f"'{archives[0]}' is an archive, which cannot be asked together with other files")
    from opstrobe.archiving.database import ArchiveDatabase
    from opstrobe.archiving.location import Location

    return ArchiveDatabase(Location(words[0]))


def _format_of(options: argparse.Namespace) -> str:
    if options.format:
        return str(options.format)
    end = os.path.splitext(options.output or "")[1][1:]
    end = {"md": "markdown", "txt": "text"}.get(end, end)
    return end if end in _FORMATS else "text"


def main() -> None:
    parser = _parser()
    options = parser.parse_args()
    try:
        from opstrobe.query import database, output, shell
    except ImportError as error:
        raise SystemExit(_fail(error)) from None
    if options.schema:
        raise SystemExit(shell.print_schema(options.arguments))
    words = list(options.arguments)
    query = words.pop(0) if words and not (os.path.exists(words[0]) or _is_url(words[0])) else None
    if query is not None and not any(letter.isspace() for letter in query):
        parser.error(f"'{query}' is neither a query nor a file")
    if query is not None and not words:
        parser.error("no trace is named")
    if options.format == "parquet" and not options.output:
        parser.error("--format parquet needs --output FILE")
    try:
        with contextlib.closing(_open(words)) as traces:
            if query is None:
                shell.run(traces, len(words), options.limit)
            else:
                output.write(traces, query, _format_of(options), options.output, options.limit)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ImportError as error:
        raise SystemExit(_fail(error)) from None
    except OSError as error:
        raise SystemExit(
            _fail(f"cannot open '{error.filename}': {str(error.strerror).lower()}" if error.filename else error)
        ) from None
    except (ValueError, database.duckdb.Error) as error:
        if "Broken pipe" in str(error):  # the reader has closed the pipe
            raise SystemExit(0) from None
        raise SystemExit(_fail(error)) from None


if __name__ == "__main__":
    main()
