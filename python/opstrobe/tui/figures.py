# SPDX-License-Identifier: Apache-2.0
"""Figures as text. The core formats those with a unit, so they read as in the output of commands."""

from __future__ import annotations

from opstrobe import _core
from opstrobe._plain import printable

Cell = str | int | float | bool | None

NOTHING = "–"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def cell_text(cell: Cell, kind: str) -> str:
    """The text of a figure; its kind is that of a column (table_model.Column)."""
    if cell is None:
        return NOTHING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return printable(cell)
    if kind == "us":
        return _core.format_duration(cell * 1000)
    if kind == "ns":
        return _core.format_duration(cell)
    if kind == "bytes":
        return _core.format_bytes(round(cell))
    if kind == "scaled":
        return _core.format_count(cell)
    if kind == "share":
        return _core.format_percent(cell * 100)
    if kind == "pct":
        return _core.format_percent(cell)
    return f"{cell:,}" if isinstance(cell, int) else _core.format_number(cell)


def bar(share: float, width: int) -> str:
    """A bar of at most `width` columns for a share from 0 to 1."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if share > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def curve(values: list[float]) -> str:
    """One block per value, from 0 to the largest; a space for 0."""
    most = max(values, default=0)
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(value / most * 8))] if value > 0 else " " for value in values)


def place(file: str | None, line: int | None) -> str:
    """ "train.py:21": the name of the file without its directories."""
    if not file:
        return ""
    name = printable(file.rpartition("/")[2])
    return f"{name}:{line}" if line is not None else name


def shorten(text: str, width: int) -> str:
    """Shortens a text to at most `width` columns. The middle is omitted, since both ends of a name matter."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[: max(0, width)]
    end = (width - 1) // 3
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"
