# SPDX-License-Identifier: Apache-2.0
"""Results of a query as text, Markdown, CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from opstrobe._plain import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    import duckdb

    from opstrobe.query.database import Answers

_OPTIONS = {"csv": "format csv, header", "json": "format json, array", "parquet": "format parquet, compression zstd"}

# In regular expressions of DuckDB; src/base/escape.c has the same rules.
_FORMULA = r"^[-=+@\t\r\n＝＋－＠](?s:.)"
_ACTS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"


def write(database: Answers, query: str, form: str, path: str | None, limit: int) -> None:
    """Writes the result of each statement of a query, to standard output or to a file. A failure leaves the file
    unchanged."""
    if path is None:
        for found in database.run(query):
            print_rows(database.relation(found), form, limit)
        return
    with replacing(path) as part:
        for found in database.run(query):
            write_rows(database.relation(found), form, part, limit)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields the file to write to, which replaces `path` once it is complete and on disk. As in src/base/sink.c, links are followed,
    and a device or a pipe is written in place."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        yield path
        return
    number, part = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    os.close(number)
    try:
        yield part
        os.chmod(part, 0o666 & ~_umask())
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_rows(found: duckdb.DuckDBPyRelation, form: str, path: str, limit: int) -> None:
    """Writes rows to a file, which is overwritten."""
    if form in _OPTIONS:
        _copy(found, form, path)
        return
    with open(path, "w", encoding="utf-8") as file:
        _write_text(found, form, file, limit)


def print_rows(found: duckdb.DuckDBPyRelation, form: str, limit: int) -> None:
    """Writes rows to standard output."""
    if form in _OPTIONS:
        _copy_to_output(found, form)
    else:
        _write_text(found, form, sys.stdout, limit)
    sys.stdout.flush()


def _copy(found: duckdb.DuckDBPyRelation, form: str, path: str) -> None:
    name = path.replace("'", "''")
    rows = _cells_of_csv(found) if form == "csv" else "found"
    found.query("found", f"copy {rows} to '{name}' ({_OPTIONS[form]})")


def _cells_of_csv(found: duckdb.DuckDBPyRelation) -> str:
    """A query for the rows with texts as the commands in C write them to CSV: no formulas, no characters that act."""

    def cell(column: str, kind: object) -> str:
        name = '"' + column.replace('"', '""') + '"'
        if str(kind) != "VARCHAR":
            return name
        formula = f"regexp_matches({name}, '{_FORMULA}') and try_cast({name} as double) is null"
        return f"if({formula}, chr(39), '') || regexp_replace({name}, '{_ACTS}', '.', 'g') as {name}"

    named = found.query("found", "from found")  # equal names of columns become different ones
    return f"(select {', '.join(map(cell, named.columns, named.types))} from found)"


def _copy_to_output(found: duckdb.DuckDBPyRelation, form: str) -> None:
    """DuckDB opens a file by its name, which would truncate the file that standard output is appended to. So it writes to a pipe."""
    read_end, write_end = os.pipe()
    with ThreadPoolExecutor(1) as readers:
        sys.stdout.flush()
        copied = readers.submit(_copy_pipe, read_end)
        try:
            _copy(found, form, f"/dev/fd/{write_end}")
        finally:
            os.close(write_end)
        copied.result()


def _copy_pipe(read_end: int) -> None:
    with open(read_end, "rb") as pipe:
        shutil.copyfileobj(pipe, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _write_text(found: duckdb.DuckDBPyRelation, form: str, file: TextIO, limit: int) -> None:
    if form == "text":
        file.write(text(found, limit))
    else:
        _write_markdown(found, file)


def text(found: duckdb.DuckDBPyRelation, limit: int) -> str:
    """The first rows as a table, which fits the terminal if there is one; 0 rows: all."""
    width = os.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    with contextlib.redirect_stdout(io.StringIO()) as written:
        found.show(max_width=width, max_rows=limit or sys.maxsize)
    return "\n".join(map(printable, written.getvalue().rstrip("\n").split("\n"))) + "\n"


def _write_markdown(found: duckdb.DuckDBPyRelation, file: TextIO) -> None:
    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(map(_markdown_cell, cells)) + " |\n"

    file.write(line(found.columns))
    file.write("|" + "---|" * len(found.columns) + "\n")
    file.writelines(map(line, found.fetchall()))


def _markdown_cell(cell: object) -> str:
    """Texts become code spans, so that they contain no markup."""
    if not isinstance(cell, str):
        return "" if cell is None else str(cell)
    return "`" + printable(cell).replace("`", "'").replace("|", "\\|") + "`"
