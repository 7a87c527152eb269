# SPDX-License-Identifier: Apache-2.0
"""The contents of a table: which rows, in which order, at which depth of a tree. Independent of the screen.

Rows are those of a finished table: operators, modules, lines. The filter is that of the viewer's tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opstrobe.tui.figures import Cell

Row = dict[str, Any]
Test = Callable[[Row], bool]

_UNITS: dict[str, dict[str, float]] = {
    "us": {"ns": 1e-3, "us": 1, "µs": 1, "ms": 1e3, "s": 1e6},
    "ns": {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
    "bytes": {
        "b": 1, "kb": 2**10, "kib": 2**10, "k": 2**10, "mb": 2**20, "mib": 2**20, "m": 2**20,
        "gb": 2**30, "gib": 2**30, "g": 2**30,
    },
    "share": {"%": 0.01},
    "pct": {"%": 1},
}  # fmt: skip
# Text in quotes, a comparison, which may have spaces around its sign, or any other word.
_WORD = re.compile(r'(-?)(?:"([^"]*)"?|([^\W\d]+\s*(?:<=|>=|=|<|>)\s*-?\d\S*|[^\W\d]+\s+(?:<=|>=|=|<|>)\s*$|\S+))')
_COMPARISON = re.compile(r"([^\W\d]+)(<=|>=|=|<|>)(.*)")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(.*)")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}


@dataclass(frozen=True)
class Column:
    id: str
    title: str
    kind: str
    """text, us, ns, bytes, count, scaled (a count with a prefix), number, share (of 1) or pct."""
    value: Callable[[Row], Cell]
    bar: bool = False
    """Draw a bar for the ratio to the largest figure next to the figure."""
    shown: Callable[[Row], str] | None = None
    """A shorter text to display; filters and sorting use the value."""

    @property
    def is_text(self) -> bool:
        return self.kind == "text"


class FilterError(ValueError):
    """The reason why a filter is invalid, in a sentence."""


def parse_filter(text: str, columns: Sequence[Column]) -> Test:
    """Parses words that the row contains, `-word` for words that it must not contain, and comparisons by the start of a
    column's name, or of a word of its title, such as `calls>10` and `self >= 1.5ms`.

    Raises FilterError for an invalid comparison.
    """
    tests = [_parse_word(match[1], match[2], match[3], columns) for match in _WORD.finditer(text)]
    return lambda row: all(test(row) for test in tests)


def _parse_word(minus: str, quoted: str | None, plain: str | None, columns: Sequence[Column]) -> Test:
    word = (plain if quoted is None else quoted) or ""
    test = (_comparison("".join(word.split()), columns) if quoted is None else None) or _holds(word, columns)
    return (lambda row: not test(row)) if minus else test


def _holds(word: str, columns: Sequence[Column]) -> Test:
    wanted = word.lower()
    texts = [column for column in columns if column.is_text]
    return lambda row: any(wanted in str(column.value(row) or "").lower() for column in texts)


def _comparison(word: str, columns: Sequence[Column]) -> Test | None:
    match = _COMPARISON.fullmatch(word)
    if not match:
        return None
    name, operator, right = match.groups()
    figures = [column for column in columns if not column.is_text]
    column = _named(figures, name)
    number = _NUMBER.fullmatch(right)
    if column is None:
        if not number or not re.fullmatch(r"[^\W\d]*%?", number[2]):
            return None  # "kernel<4,": part of a name
        raise FilterError(
            f"No column '{name}' with figures (choose from {_titles(figures)}). "
            "Put text that contains < or > in quotes."
        )
    if not number:
        example = "1ms" if column.kind in ("us", "ns") else "10"
        wrong = f"'{right}' is not a number" if right else f"'{word}' has no number"
        raise FilterError(f"{wrong}: write for example {_titles([column])}>{example}.")
    return _compare(column, _OPERATORS[operator], _limit(column, number[1], number[2], right))


def _limit(column: Column, number: str, unit: str, right: str) -> float:
    units = _UNITS.get(column.kind, {})
    if unit and not units:
        raise FilterError(f"'{column.title}' has no unit, but '{right}' has one.")
    if unit and unit.lower() not in units:
        raise FilterError(f"Invalid unit '{unit}' (choose from {', '.join(units)}).")
    default = {"ns": 1e3}.get(column.kind, 1)  # times without a unit are microseconds, in all tables
    return float(number) * (units[unit.lower()] if unit else default)


def _compare(column: Column, holds: Callable[[float, float], bool], limit: float) -> Test:
    def test(row: Row) -> bool:
        value = column.value(row)
        return isinstance(value, (int, float)) and holds(value, limit)

    return test


def _plain(text: str) -> str:
    return text.lower().replace("_", "").replace(" ", "")


def _named(columns: Sequence[Column], name: str) -> Column | None:
    """The first column whose id or title, with its words in either order, begins with this name; else the first with such a word in
    its title."""
    wanted = _plain(name)

    def has(texts: Iterable[str]) -> bool:
        return any(_plain(text).startswith(wanted) for text in texts)

    for column in columns:
        if has((column.id, column.title, "".join(reversed(column.title.split())))):
            return column
    return next((column for column in columns if has(_endings(column.title))), None)


def _endings(title: str) -> list[str]:
    words = title.split()
    return [" ".join(words[i:]) for i in range(len(words))]


def _titles(columns: Sequence[Column]) -> str:
    """The titles as a filter takes them."""
    return ", ".join(column.title.replace(" ", "_") for column in columns)


def sort_rows(rows: Sequence[Row], column: Column | None, descending: bool) -> list[Row]:
    """The rows in order; the sort is stable. Rows without a figure come last in either direction."""
    if column is None:
        return list(rows)
    known = [row for row in rows if column.value(row) is not None]
    if column.is_text:
        known.sort(key=lambda row: str(column.value(row)).lower(), reverse=descending)
    else:
        known.sort(key=lambda row: column.value(row), reverse=descending)  # type: ignore[arg-type, return-value]
    return known + [row for row in rows if column.value(row) is None]


@dataclass
class Line:
    row: Row
    depth: int = 0
    is_open: bool | None = None
    """None: it has no children."""


def tree_lines(
    rows: Sequence[Row],
    parent: Callable[[Row], int | None],
    column: Column | None,
    descending: bool,
    closed: set[int],
    test: Test | None,
) -> list[Line]:
    """Rows name their parents by number; parents precede them. With a filter: the matching rows and all their
    ancestors, open."""
    below: dict[int | None, list[int]] = {}
    for number, row in enumerate(rows):
        below.setdefault(parent(row), []).append(number)
    kept = set(range(len(rows)))
    if test is not None:
        kept = {number for number, row in enumerate(rows) if test(row)}
        for number in range(len(rows) - 1, -1, -1):
            above = parent(rows[number])
            if number in kept and above is not None:
                kept.add(above)
    numbers = {id(row): number for number, row in enumerate(rows)}

    def ordered(above: int | None) -> list[Row]:
        siblings = [rows[number] for number in below.get(above, []) if number in kept]
        return sort_rows(siblings, column, descending)[::-1]

    lines: list[Line] = []
    waiting = [(row, 0) for row in ordered(None)]
    while waiting:
        row, depth = waiting.pop()
        number = numbers[id(row)]
        line = Line(row, depth)
        lines.append(line)
        if number in below:
            line.is_open = test is not None or number not in closed
            if line.is_open:
                waiting += [(child, depth + 1) for child in ordered(number)]
    return lines
