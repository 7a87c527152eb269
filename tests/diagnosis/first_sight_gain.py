# SPDX-License-Identifier: Apache-2.0
"""Measures what the fixes in `first_sight/truth.toml` save: `python first_sight_gain.py [NAME...]` prints a table.

A program runs with and without its fix, on one thread. An iteration of its last loop is a step, and the figures are medians
of CPU time, worker processes included, so that other work on the machine hardly changes them.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from typing import Any

import tomllib
from first_sight import FOLDER

STEPS = 6
MARK = f"""
import os, resource, time
marks = []
def mark():
    marks.append(time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))
    if len(marks) > {STEPS}:
        steps = sorted(after - before for before, after in zip(marks[2:], marks[3:]))
        print("median", steps[len(steps) // 2], flush=True)
        os._exit(0)
"""


def with_marks(text: str) -> str:
    """The program with a mark at the start of each iteration of its last loop."""
    tree = ast.parse(text)
    block: Any = tree
    while not isinstance(block, ast.For):
        block = [node for node in block.body if isinstance(node, ast.For | ast.With)][-1]
    block.body.insert(0, ast.parse("mark()").body[0])
    return MARK + ast.unparse(ast.fix_missing_locations(tree))


def step_time(text: str) -> float:
    command = [sys.executable, "-c", with_marks(text)]
    ran = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, stdout=subprocess.PIPE, text=True
    )
    return float(ran.stdout.rsplit("median", 1)[1])


def fixed(text: str, replacements: list[list[str]]) -> str:
    for old, new in replacements:
        if text.count(old) != 1:
            raise ValueError(f"the fix replaces {text.count(old)} places, not one: {old!r}")
        text = text.replace(old, new)
    return text


def main(names: list[str]) -> None:
    truth = tomllib.loads((FOLDER / "truth.toml").read_text())
    print("| program | planted | fixed | gain |\n|---|---|---|---|")
    for name in names or [name for name, entry in truth.items() if "fix" in entry]:
        text = (FOLDER / f"{name}.py").read_text()
        before, after = step_time(text), step_time(fixed(text, truth[name]["fix"]))
        gain = 100 * (1 - after / before)
        print(f"| {name} | {before * 1e3:.1f} ms | {after * 1e3:.1f} ms | {gain:.0f} % |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
