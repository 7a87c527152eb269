# SPDX-License-Identifier: Apache-2.0
"""Records the programs of `first_sight/` as a user would, by the command, and scores the advice against `truth.toml`.

`python first_sight.py` prints the table; `python first_sight.py NAME` one program's advice. `--recordings FOLDER` scores stored traces,
`NAME.json.gz`, and how often the planted line is among the first lines with time that no finding explains. The programs were written before
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
LINES = 3  # lines with time that no finding explains that a reader looks at


def advice(program: pathlib.Path) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        trace = f"{folder}/trace.json.gz"
        subprocess.run([*COMMAND, "run", *OPTIONS, "-o", trace, str(program)], check=True, capture_output=True)
        findings: list[dict[str, Any]] = advise(pathlib.Path(trace))["findings"]
    return findings


def advise(trace: pathlib.Path) -> dict[str, Any]:
    printed = subprocess.run([*COMMAND, "advise", "--format", "json", trace], check=True, capture_output=True)
    answer: dict[str, Any] = json.loads(printed.stdout)
    return answer


def planted_lines(program: pathlib.Path) -> set[int]:
    return {n for n, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# planted")}


def is_planted(where: list[dict[str, Any]], program: pathlib.Path) -> bool:
    places = {w["line"] for w in where if w["file"] and pathlib.Path(w["file"]).name == program.name}
    return bool(places & planted_lines(program))


def is_at(finding: dict[str, Any], program: pathlib.Path) -> bool:
    return is_planted(finding["where"], program)


def score_recordings(folders: list[pathlib.Path]) -> None:
    truth = tomllib.loads((FOLDER / "truth.toml").read_text())
    planted = found = seen = 0
    print(
        "| program | first finding at the planted line | not explained | of that, rank of the planted line |\n|---|---|---|---|"
    )
    for trace in sorted(each for folder in folders for each in folder.glob("*.json.gz")):
        program = FOLDER / f"{trace.name.removesuffix('.json.gz')}.py"
        if program.stem not in truth or not program.exists():
            continue
        advice = advise(trace)
        rest = advice["not_explained"] or {"percent": 0, "lines": []}
        ranks = [rank for rank, line in enumerate(rest["lines"], 1) if is_planted([line], program)]
        at_first = bool(advice["findings"]) and is_at(advice["findings"][0], program)
        planted += 1
        found += at_first
        seen += at_first or bool(ranks and ranks[0] <= LINES)
        print(
            f"| {program.stem} | {'yes' if at_first else 'no'} | {rest['percent']:.0f} % | {ranks[0] if ranks else '-'} |",
            flush=True,
        )
    print(
        f"\nThe first finding is at the planted line in {found} of {planted}; it or one of the first {LINES} lines"
        f" that no finding explains in {seen}."
    )


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
    if sys.argv[1:2] == ["--recordings"]:
        score_recordings([pathlib.Path(folder) for folder in sys.argv[2:]])
    else:
        main(sys.argv[1:])
