# SPDX-License-Identifier: Apache-2.0
"""The shell of `opstrobe sql`: history, completion of tables and columns, and commands that begin with a dot."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import sqlite3
import sys
import time

from opstrobe._command_parser import reason_of
from opstrobe._core import format_duration
from opstrobe._plain import print_message
from opstrobe.query import output
from opstrobe.query.schema import print_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import duckdb

    from opstrobe.query.database import Answers

_HELP = """\
A statement of SQL ends with a semicolon.
.tables          list the tables
.schema [TABLE]  show the columns of all tables or of one, with types and meanings
.open TRACE...   query these traces, or an archive, from now on
.mode [FORMAT]   show results as text, csv, json or markdown
.limit N         rows that text shows, 0 for all
.output [FILE]   write results to FILE from now on; without FILE, to the terminal
.read FILE       run the statements and commands in FILE
.timer on|off    show how long each statement takes
.help            show this text
.quit            exit, like Ctrl-D"""
_MODES = ("text", "csv", "json", "markdown")
_FIRST_WORDS = ["select", "with", "from", "describe", "show", "summarize", "help", "quit", "exit"]
_WORDS = (
    "select from where group by order limit having join using as and or not distinct count sum avg median min max desc "
    "with case when then else end between is null in like over partition describe summarize show tables"
)


def run(
    open_sources: Callable[[Sequence[str]], Answers],
    words: Sequence[str],
    form: str,
    path: str | None,
    limit: int,
    command: str | None = None,
) -> int:
    """Runs a command, or else the statements and commands of standard input, on what `words` name. Returns the exit status: 1 if a
    statement or command of a script failed."""
    shell = _Shell(open_sources, words, form, path, limit)
    try:
        if command is not None:
            shell.feed(command)
            return 1 if shell.failures else 0
        if sys.stdin.isatty():
            _interact(shell, len(words))
            return 0
        shell.run_script(sys.stdin)
        shell.finish()
        return 1 if shell.failures else 0
    finally:
        shell.close()


def is_command(word: str) -> bool:
    """Returns whether an argument is a command of the shell, such as ".schema events", rather than the name of a file."""
    return bool(re.fullmatch(r"\.[a-z]+(\s.*)?", word.strip()))


def _interact(shell: _Shell, count: int) -> None:
    _prepare_terminal(shell)
    about = shell.database.title() if count else "no traces (.open TRACE...)"
    print(f"opstrobe sql: {about}; .help lists the commands")
    while not shell.ended:
        try:
            shell.feed(input("   ...> " if shell.pending else "sql> "))
        except EOFError:
            print()
            break
        except KeyboardInterrupt:
            print()
            shell.pending = ""
    shell.finish()


def _query_errors() -> tuple[type[Exception], ...]:
    """The errors of a query. Those of DuckDB are absent if it is not loaded, because the shell also works without it."""
    engine = sys.modules.get("duckdb")
    return (OSError, ValueError, engine.Error) if engine else (OSError, ValueError)


class _Shell:
    def __init__(
        self,
        open_sources: Callable[[Sequence[str]], Answers],
        words: Sequence[str],
        form: str,
        path: str | None,
        limit: int,
    ) -> None:
        self._open_sources = open_sources
        self.database = open_sources(words)
        self._form = form
        self._path = path
        self._written = False
        self._limit = limit
        self._times = False
        self._reading: list[str] = []
        self.pending = ""
        self.failures = 0
        self.ended = False

    def close(self) -> None:
        self.database.close()

    def run_script(self, lines: Any) -> None:
        for line in lines:
            if self.ended:
                break
            self.feed(line.rstrip("\n"))

    def feed(self, line: str) -> None:
        """Adds a line. Runs it if it is a command, or if it completes a statement."""
        if not self.pending and line.lstrip().startswith("."):
            self._command(line)
        elif not self.pending and line.strip().rstrip(";").lower() in _WORDS_FOR_COMMANDS:
            self._command(f".{line.strip().lower()}")
        elif (self.pending + line).strip():
            self.pending += line + "\n"
            if sqlite3.complete_statement(self.pending):
                self.finish()

    def finish(self) -> None:
        """Runs what has been read, even if its semicolon is missing."""
        statement, self.pending = self.pending, ""
        if statement.strip():
            self._answer(statement)

    def _answer(self, query: str) -> None:
        begin = time.perf_counter()
        try:
            for found in self.database.run(query):
                self._show(self.database.relation(found))
        except _query_errors() as error:
            if isinstance(error, BrokenPipeError) or "Broken pipe" in str(error):
                raise BrokenPipeError from None
            self._fail(error)
        except KeyboardInterrupt:
            self._fail("interrupted")
        if self._times:
            print(format_duration(1e9 * (time.perf_counter() - begin)))

    def _show(self, rows: duckdb.DuckDBPyRelation) -> None:
        if self._path is None:
            output.print_rows(rows, self._form, self._limit)
            return
        with output.replacing(self._path) as part:
            output.write_rows(rows, self._form, part, self._limit)

    def _fail(self, reason: Exception | str) -> None:
        self.failures += 1
        text = reason_of(reason) if isinstance(reason, Exception) else reason
        print_message("opstrobe sql", text)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _command(self, line: str) -> None:
        try:
            name, *words = shlex.split(line.strip().rstrip(";"))
            found = [known for known in _COMMANDS if known == name] or [
                known for known in _COMMANDS if known.startswith(name) and len(name) > 1
            ]
            if len(found) != 1:
                raise ValueError(f"unknown command '{name}'; .help lists the commands")
            _COMMANDS[found[0]](self, words)
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            self._fail(error)

    def _tables(self, words: list[str]) -> None:
        print_schema(words, brief=True, answers=self.database)

    def _schema(self, words: list[str]) -> None:
        if print_schema(words, answers=self.database):
            self.failures += 1

    def _open(self, words: list[str]) -> None:
        if not words:
            raise ValueError("usage: .open TRACE...")
        opened = self._open_sources(words)
        self.database.close()
        self.database = opened

    def _mode(self, words: list[str]) -> None:
        if not words:
            print(self._form)
            return
        if words[0] not in _MODES or len(words) > 1:
            raise ValueError(f"invalid mode '{' '.join(words)}' (choose from {', '.join(_MODES)})")
        self._form = words[0]

    def _set_limit(self, words: list[str]) -> None:
        if len(words) != 1 or not words[0].isdecimal():
            raise ValueError("usage: .limit N")
        self._limit = int(words[0])

    def _output(self, words: list[str]) -> None:
        if len(words) > 1:
            raise ValueError("usage: .output [FILE]")
        self._path = words[0] if words and words[0] != "stdout" else None

    def _read(self, words: list[str]) -> None:
        if len(words) != 1:
            raise ValueError("usage: .read FILE")
        path = os.path.abspath(words[0])
        if path in self._reading:
            raise ValueError(f"'{words[0]}' reads itself")
        self._reading.append(path)
        try:
            with open(path, encoding="utf-8") as file:
                self.run_script(file)
            self.finish()
        finally:
            self._reading.pop()

    def _timer(self, words: list[str]) -> None:
        if words not in (["on"], ["off"]):
            raise ValueError("usage: .timer on|off")
        self._times = words == ["on"]

    def _help(self, words: list[str]) -> None:
        print(_HELP)

    def _quit(self, words: list[str]) -> None:
        self.ended = True


_COMMANDS: dict[str, Callable[[_Shell, list[str]], None]] = {
    ".tables": _Shell._tables,
    ".schema": _Shell._schema,
    ".open": _Shell._open,
    ".mode": _Shell._mode,
    ".limit": _Shell._set_limit,
    ".output": _Shell._output,
    ".read": _Shell._read,
    ".timer": _Shell._timer,
    ".help": _Shell._help,
    ".quit": _Shell._quit,
    ".exit": _Shell._quit,
}


# As other shells have them: none of them begins a statement.
_WORDS_FOR_COMMANDS = ("help", "quit", "exit")


def _prepare_terminal(shell: _Shell) -> None:
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        matching = _completions(shell.database, text, at_start=readline.get_begidx() == 0 and not shell.pending)
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


def _completions(database: Answers, text: str, *, at_start: bool) -> list[str]:
    """Words that may continue a text: commands and words that begin a statement at the start; columns after the name or alias of a table
    and a dot; else also tables and keywords."""
    if at_start:
        first = [*_COMMANDS] if text.startswith(".") else _FIRST_WORDS
        return [word for word in first if word.startswith(text.lower())]
    declared = database.tables()
    columns = {str(column["name"]) for table in declared for column in table["columns"]}
    columns |= {column["name"] for column in database.shared_columns()}
    before, dot, rest = text.rpartition(".")
    if not dot:
        words = columns | {str(table["id"]) for table in declared} | {*_WORDS.split()}
        return sorted(word for word in words if word.startswith(text.lower()))
    for table in declared:
        if table["id"] == before:
            columns = {str(column["name"]) for column in table["columns"]}
            columns |= {column["name"] for column in database.shared_columns()}
    return sorted(f"{before}.{name}" for name in columns if name.startswith(rest.lower()))
