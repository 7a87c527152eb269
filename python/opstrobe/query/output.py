# SPDX-License-Identifier: Apache-2.0
"""Results of a query as text, Markdown, CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    import duckdb

    from opstrobe.query.database import Answers

_OPTIONS = {"csv": "format csv, header", "json": "format json, array", "parquet": "format parquet, compression zstd"}


def write(database: Answers, query: str, form: str, path: str | None, limit: int) -> None:
    """Writes the result of each statement of a query, to standard output or to a file. A failure leaves the file
    unchanged."""
    if path is None:
        for found in database.run(query):
            _write_rows(database.relation(found), form, "/dev/stdout", sys.stdout, limit)
        return
    with _replacing(path) as part:
        for found in database.run(query):
            with open(part, "w", encoding="utf-8") as file:
                _write_rows(database.relation(found), form, part, file, limit)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[str]:
    number, part = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path) or ".")
    os.close(number)
    try:
        yield part
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_rows(found: duckdb.DuckDBPyRelation, form: str, path: str, file: TextIO, limit: int) -> None:
    if form == "text":
        file.write(text(found, limit))
    elif form == "markdown":
        _write_markdown(found, file)
    else:
        name = path.replace("'", "''")
        found.query("found", f"copy found to '{name}' ({_OPTIONS[form]})")


def text(found: duckdb.DuckDBPyRelation, limit: int) -> str:
    """The first rows as a table, which fits the terminal if there is one; 0 rows: all."""
    width = os.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    with contextlib.redirect_stdout(io.StringIO()) as written:
        found.show(max_width=width, max_rows=limit or sys.maxsize)
    return written.getvalue()


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
    plain = "".join(letter if letter.isprintable() else " " for letter in cell)
    return "`" + plain.replace("`", "'").replace("|", "\\|") + "`"
