# SPDX-License-Identifier: Apache-2.0
"""The tables of traces as they are declared: no package for queries is needed to print them."""

from __future__ import annotations

import json
from typing import Any, Protocol

from opstrobe import _core
from opstrobe._plain import print_message

# Columns that SQL adds to every table.
TRACE_COLUMNS = [
    {"name": "path", "type": "text", "about": "file of the trace"},
    {"name": "rank", "type": "integer", "about": "rank of the process in its job"},
]


def tables() -> list[dict[str, Any]]:
    """The tables with their columns: id, about, and columns with name, type, unit, about."""
    declared: list[dict[str, Any]] = json.loads(_core.tables_json())["relations"]
    return declared


def version() -> int:
    """The version of the schema, which docs/reference/schema.md explains."""
    number: int = json.loads(_core.tables_json())["relations_version"]
    return number


class Declared(Protocol):
    """What has declared tables: traces, or an archive."""

    def tables(self) -> list[dict[str, Any]]: ...
    def shared_columns(self) -> list[dict[str, str]]: ...


class OnlyDeclared:
    """The tables where the packages for queries are missing: their declaration, without rows."""

    def __init__(self, missing: ImportError | None = None) -> None:
        self._missing = missing

    def title(self) -> str:
        return str(self._missing)

    def tables(self) -> list[dict[str, Any]]:
        return tables()

    def shared_columns(self) -> list[dict[str, str]]:
        """The columns that every table has in addition to its own."""
        return TRACE_COLUMNS

    def relation(self, rows: Any) -> Any:
        raise NotImplementedError

    def run(self, text: str) -> Any:
        raise ValueError(str(self._missing))

    def close(self) -> None:
        pass


_ALL = OnlyDeclared()

# By type of a declared column; all others are integers.
_TYPES = {"text": "varchar", "json": "varchar", "flag": "boolean", "number": "double", "date": "date"}


def print_schema(names: list[str], *, brief: bool = False, answers: Declared | None = None) -> int:
    """Prints the tables of these names, or all, with the types and meanings of their columns unless `brief`. Returns 2 if
    one does not exist."""
    known: dict[str, Any] = {str(table["id"]): table for table in (answers or _ALL).tables()}
    for name in names:
        if name not in known:
            print_message("opstrobe sql", f"unknown table '{name}'; tables are {', '.join(known)}")
            return 2
    for name in names or known:
        table = known[name]
        print(f"{name:<14} {table['about']}" if brief else f"{name}: {table['about']}")
        for column in () if brief else table["columns"]:
            unit = f", {column['unit']}" if "unit" in column else ""
            print(f"  {column['name']:<18} {_TYPES.get(column['type'], 'bigint'):<8} {column['about']}{unit}")
    if not brief:
        print(f"in every table (version {version()} of the schema):")
        for column in (answers or _ALL).shared_columns():
            print(f"  {column['name']:<18} {_TYPES.get(column['type'], 'bigint'):<8} {column['about']}")
    return 0
