# SPDX-License-Identifier: Apache-2.0
"""Measures what the fixes in `first_sight/truth.toml` save: `python first_sight_gain.py [NAME...]` prints a table.

A program runs with and without its fix, on one thread. An iteration of its last loop, or of the loop at the line `loop`, is
a step, and the figures are medians of CPU time, worker processes included, so that other work on the machine hardly
changes them. Entries with `clock = "wall"` are measured by wall-clock time, on a quiet machine.
"""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import subprocess
import sys
from typing import Any

import tomllib
from first_sight import FOLDER

STEPS = 6
MARK = f"""
import os, resource, time
marks = []
def cpu():
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
wall = time.perf_counter
def mark():
    marks.append(CLOCK())
    if len(marks) > {STEPS}:
        steps = sorted(after - before for before, after in zip(marks[2:], marks[3:]))
        print("median", steps[len(steps) // 2], flush=True)
        os._exit(0)
"""


def loop_at(tree: ast.Module, text: str, line: str) -> Any:
    lines = text.splitlines()
    return next(n for n in ast.walk(tree) if isinstance(n, ast.For) and lines[n.lineno - 1].strip() == line)


def last_loop(tree: ast.Module) -> Any:
    block: Any = tree
    while not isinstance(block, ast.For):
        block = [node for node in block.body if isinstance(node, ast.For | ast.With)][-1]
    return block


def with_marks(text: str, entry: dict[str, Any]) -> str:
    """The program with a mark at the start of each iteration of the loop over steps."""
    tree = ast.parse(text)
    loop = loop_at(tree, text, entry["loop"]) if "loop" in entry else last_loop(tree)
    loop.body.insert(0, ast.parse("mark()").body[0])
    return MARK.replace("CLOCK", entry.get("clock", "cpu")) + ast.unparse(ast.fix_missing_locations(tree))


def step_time(text: str, entry: dict[str, Any]) -> float:
    command = [sys.executable, "-c", with_marks(text, entry)]
    with subprocess.Popen(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as ran:
        assert ran.stdout
        median = next((line for line in ran.stdout if line.startswith("median")), None)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ran.pid, signal.SIGKILL)  # also processes that the program started, which hold its output open
    if median is None:
        raise RuntimeError(f"the program ended with status {ran.returncode} after fewer than {STEPS} steps")
    return float(median.split()[1])


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
        entry = truth[name]
        before, after = step_time(text, entry), step_time(fixed(text, entry["fix"]), entry)
        gain = 100 * (1 - after / before)
        print(f"| {name} | {before * 1e3:.1f} ms | {after * 1e3:.1f} ms | {gain:.0f} % |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
