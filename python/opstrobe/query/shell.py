# SPDX-License-Identifier: Apache-2.0
"""The shell of `opstrobe sql`: history, completion of tables and columns, and commands that begin with a dot."""

from __future__ import annotations

import os
import pathlib
import shlex
import sys

from opstrobe.query import output
from opstrobe.query.database import Answers, duckdb
from opstrobe.query.tables import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HELP = """\
A statement of SQL ends with a semicolon.
.tables          the tables
.schema [TABLE]  columns of all tables or of one, with their meanings
.open TRACE...   traces to ask, instead of those so far
.help            this text
.quit            end, as Ctrl-D does"""
_COMMANDS = (".tables", ".schema", ".open", ".help", ".quit")
_WORDS = (
    "select from where group by order limit having join using as and or not distinct count sum avg median min max desc"
)


def run(database: Answers, count: int, limit: int) -> None:
    """Reads statements about `count` traces until the end of input."""
    shell = _Shell(database, limit)
    interactive = sys.stdin.isatty()
    if interactive:
        _prepare_terminal()
        traces = f"{count} trace{'s' * (count != 1)}" if count else "no trace (.open TRACE)"
        print(f"opstrobe sql: {traces}; .help lists commands")
    pending = ""
    while not shell.ended:
        try:
            line = input(("   ...> " if pending else "sql> ") if interactive else "")
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            pending = ""
            continue
        if not pending and line.lstrip().startswith("."):
            shell.command(line)
        elif (pending + line).strip():
            pending += line + "\n"
            if line.rstrip().endswith(";"):
                shell.answer(pending)
                pending = ""
    if pending.strip():
        shell.answer(pending)
    elif interactive:
        print()


class _Shell:
    def __init__(self, database: Answers, limit: int) -> None:
        self._database = database
        self._limit = limit
        self.ended = False

    def answer(self, query: str) -> None:
        try:
            for found in self._database.run(query):
                print(output.text(self._database.relation(found), self._limit), end="")
        except (OSError, ValueError, duckdb.Error) as error:
            print(error, file=sys.stderr)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)

    def command(self, line: str) -> None:
        name, *words = shlex.split(line)
        if name == ".tables":
            print_schema([], brief=True)
        elif name == ".schema":
            print_schema(words)
        elif name == ".open":
            self._open(words)
        elif name == ".help":
            print(_HELP)
        elif name in (".quit", ".exit"):
            self.ended = True
        else:
            print(f"{name} is not a command; .help lists them", file=sys.stderr)

    def _open(self, paths: list[str]) -> None:
        try:
            self._database.open(paths)
        except OSError as error:
            print(error, file=sys.stderr)


def print_schema(names: list[str], *, brief: bool = False) -> int:
    """Prints the tables of these names, or all, with the meanings of their columns unless `brief`. Returns 2 if one
    does not exist."""
    known: dict[str, Any] = {str(table["id"]): table for table in tables()}
    for name in names:
        if name not in known:
            print(f"unknown table '{name}'; tables are {', '.join(known)}", file=sys.stderr)
            return 2
    for name in names or known:
        table = known[name]
        print(f"{name:<10} {table['about']}" if brief else f"{name}: {table['about']}")
        for column in () if brief else table["columns"]:
            unit = f", {column['unit']}" if "unit" in column else ""
            print(f"  {column['name']:<18} {column['about']}{unit}")
    if not brief:
        print("path and rank, in every table: file of the trace, and rank of the process in its job")
    return 0


def _prepare_terminal() -> None:
    try:
        import readline
    except ImportError:
        return
    words = sorted({*_WORDS.split(), *_COMMANDS, "path", "rank", *_names()})

    def complete(text: str, state: int) -> str | None:
        matching = [word for word in words if word.startswith(text)]
        return matching[state] if state < len(matching) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,()=<>+-*/;")
    readline.parse_and_bind("tab: complete")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    history = pathlib.Path(state, "opstrobe", "sql_history")
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
        readline.read_history_file(history)
    except OSError:
        return
    import atexit

    atexit.register(_save_history, history)


def _save_history(path: pathlib.Path) -> None:
    import contextlib
    import readline

    readline.set_history_length(1000)
    with contextlib.suppress(OSError):
        readline.write_history_file(path)


def _names() -> set[str]:
    found: set[str] = set()
    for table in tables():
        columns: Any = table["columns"]
        found |= {str(table["id"]), *(str(column["name"]) for column in columns)}
    return found
