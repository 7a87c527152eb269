# SPDX-License-Identifier: Apache-2.0
"""Lines of loops and searches in the source of a program."""

from __future__ import annotations

import json
import pathlib
import types

import pytest

from opstrobe.recording import source

PROGRAM = """\
def find(items, key):
    while True:
        for item in items:
            if item in (1, 2) or key not in items:
                return item


class Table:
    @property
    def known(self):
        return any(key in self.rows for key in self.keys)
"""


def module_of(path: pathlib.Path) -> types.ModuleType:
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    return module


def test_lines_of_loops_and_searches(tmp_path: pathlib.Path) -> None:
    table, broken, odd = tmp_path / "table.py", tmp_path / "broken.py", tmp_path / "\udcff.py"
    table.write_text(PROGRAM)
    odd.write_text(PROGRAM)
    broken.write_text("def (")
    facts = source.facts_of(
        [json, source, module_of(tmp_path / "gone.py"), module_of(broken), module_of(odd), module_of(table)]
    )
    assert facts == {str(table): {"loops": [(2, 5), (3, 5)], "searches": [(1, 4), (11, 11)]}}
    json.loads(source.make_json())


def test_paths_of_all_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of files that are too long to parse, too, without parts such as "..", as in stacks."""
    long, short = tmp_path / "long.py", tmp_path / "short.py"
    long.write_text(PROGRAM)
    short.write_text("x = 1")
    monkeypatch.setattr(source, "_BYTES_MAX", 10)
    facts = source.facts_of([module_of(tmp_path / "tests" / ".." / "long.py"), module_of(short)])
    assert facts == {str(long): {}, str(short): {"loops": [], "searches": []}}
