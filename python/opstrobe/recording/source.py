# SPDX-License-Identifier: Apache-2.0
"""Where the source of the program has loops and searches, which calls do not show. Advice names these lines
(src/derive/source.h)."""

from __future__ import annotations

import ast
import functools
import json
import os
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

_BYTES_MAX = 1 << 20  # of all files together, which take about a second to parse
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A comprehension of these kinds is a separate function before Python 3.12; a generator always is.
_COMPREHENSIONS: tuple[type[ast.AST], ...] = (
    (ast.GeneratorExp,) if sys.version_info >= (3, 12) else (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
)
# A search in one of these is in few items, or in a table.
_SMALL = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr)


class _Facts(ast.NodeVisitor):
    """Loops as pairs of first and last line, and searches (`x in items`) as pairs of the first line of the function and the line."""

    def __init__(self) -> None:
        self.loops: list[tuple[int, int]] = []
        self.searches: list[tuple[int, int]] = []
        self._function = 1

    def generic_visit(self, node: ast.AST) -> None:
        outer = self._function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._function = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        elif isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            self._function = node.lineno  # type: ignore[attr-defined]
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self.loops.append((node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.Compare):
            for operator, items in zip(node.ops, node.comparators):
                if isinstance(operator, (ast.In, ast.NotIn)) and not isinstance(items, _SMALL):
                    self.searches.append((self._function, node.lineno))
        super().generic_visit(node)
        self._function = outer


@functools.lru_cache(maxsize=256)
def _facts_of(path: str, modified_ns: int) -> dict[str, Any]:
    with open(path, "rb") as file:
        facts = _Facts()
        facts.visit(ast.parse(file.read()))
    return {"loops": facts.loops, "searches": facts.searches}


def _program_files(modules: Iterable[ModuleType]) -> list[str]:
    """The files of modules that are of no library, in their order."""
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {_PACKAGE}
    inside = tuple(os.path.join(library, "") for library in libraries)
    paths = (getattr(module, "__file__", None) for module in modules)
    sources = (os.path.normpath(path) for path in paths if isinstance(path, str) and path.endswith(".py"))
    return [path for path in dict.fromkeys(sources) if not path.startswith(inside) and "-packages" not in path]


def facts_of(modules: Iterable[ModuleType]) -> dict[str, Any]:
    """A file that cannot be read or parsed is left out, and one whose path is not UTF-8. Those beyond the limit have no
    lines, but paths: names in the trace may lack the directory (`ops_source_find_path`)."""
    facts, size_bytes = {}, 0
    for path in _program_files(modules):
        try:
            path.encode()
            status = os.stat(path)
            is_read = size_bytes + status.st_size <= _BYTES_MAX
            size_bytes += status.st_size if is_read else 0
            facts[path] = _facts_of(path, status.st_mtime_ns) if is_read else {}
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
    return facts


def make_json() -> str:
    return json.dumps(facts_of(list(sys.modules.values())), ensure_ascii=False, separators=(",", ":"))
