# SPDX-License-Identifier: Apache-2.0
"""Records the programs of `first_sight/` as a user would, by the command, and scores the advice against `truth.toml`.

`python first_sight.py` prints the table; `python first_sight.py NAME` one program's advice. The programs were written before
the rules were tried on them. This is not a test: what a rule finds at first sight is a measurement.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import tomllib

FOLDER = pathlib.Path(__file__).parent / "first_sight"
COMMAND = [str(pathlib.Path(sys.executable).parent / "opstrobe")]
OPTIONS = ["--record-shapes", "--memory", "--with-stack", "--with-modules"]


def advice(program: pathlib.Path) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        trace = f"{folder}/trace.json.gz"
        subprocess.run([*COMMAND, "run", *OPTIONS, "-o", trace, str(program)], check=True, capture_output=True)
        printed = subprocess.run([*COMMAND, "advise", "--format", "json", trace], check=True, capture_output=True)
    findings: list[dict[str, Any]] = json.loads(printed.stdout)["findings"]
    return findings


def planted_lines(program: pathlib.Path) -> set[int]:
    return {n for n, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# planted")}


def is_at(finding: dict[str, Any], program: pathlib.Path) -> bool:
    places = {w["line"] for w in finding["where"] if w["file"] and pathlib.Path(w["file"]).name == program.name}
    return bool(places & planted_lines(program))


def main(names: list[str]) -> None:
    truth = tomllib.loads((FOLDER / "truth.toml").read_text())
    programs = [p for p in sorted(FOLDER.glob("*.py")) if not names or p.stem in names]
    first = line = loud = over = 0
    print("| program | first finding | its share of a step | names the cause | at its line |\n|---|---|---|---|---|")
    for program in programs:
        findings = advice(program)
        if len(names) == 1:
            print(json.dumps(findings, indent=1))
        top = findings[0] if findings else None
        over += any(f["predicted_gain_percent"] > 100 for f in findings)
        shown = f"{top['id']} | {top['predicted_gain_percent']:.0f} %" if top else "none |"
        if program.stem not in truth:
            high = [f["id"] for f in findings if f["severity"] == "high"]
            loud += bool(high)
            print(f"| {program.stem} | {shown} | {'**high**' if high else 'healthy, none high'} | |", flush=True)
            continue
        named = top is not None and top["id"] in truth[program.stem]["says"]
        at_line = top is not None and is_at(top, program)
        first += named and at_line
        line += at_line
        print(f"| {program.stem} | {shown} | {'yes' if named else 'no'} | {'yes' if at_line else 'no'} |", flush=True)
    planted = sum(p.stem in truth for p in programs)
    print(
        f"\nThe cause is the first finding at its line in {first} of {planted}; the first finding is at the line in {line};"
        f" {loud} of {len(programs) - planted} healthy programs with a finding of severity high;"
        f" {over} programs with a share above 100 %."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
