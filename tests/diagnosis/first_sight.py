# SPDX-License-Identifier: Apache-2.0
"""Records the programs of `first_sight/` as a user would, by the command, and scores the advice against `truth.toml`.

`python first_sight.py` prints the table; `python first_sight.py NAME` one program's advice. `--recordings FOLDER` scores stored traces,
`NAME.json.gz`, and how often the planted line is among the first lines with time that no finding explains. `--gains FOLDER` compares the
predicted gains of findings that name the cause with `measured_percent`. The programs were written before
the rules were tried on them. This is not a test: what a rule finds at first sight is a measurement.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import tomllib

FOLDER = pathlib.Path(__file__).parent / "first_sight"
COMMAND = [str(pathlib.Path(sys.executable).parent / "opstrobe")]
OPTIONS = ["--record-shapes", "--memory", "--with-stack", "--with-modules"]
LINES = 3  # lines with time that no finding explains that a reader looks at
NEAR = (0.1, 0.3)  # largest relative errors of predicted gains that are counted


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


def stored(folders: list[pathlib.Path]) -> Iterator[tuple[pathlib.Path, dict[str, Any], dict[str, Any]]]:
    """Yields programs with a planted cause, their entries of `truth.toml`, and the advice on their recordings."""
    truth = tomllib.loads((FOLDER / "truth.toml").read_text())
    for trace in sorted(each for folder in folders for each in folder.glob("*.json.gz")):
        program = FOLDER / f"{trace.name.removesuffix('.json.gz')}.py"
        if program.stem in truth and program.exists():
            yield program, truth[program.stem], advise(trace)


def score_recordings(folders: list[pathlib.Path]) -> None:
    planted = found = seen = 0
    print(
        "| program | first finding at the planted line | not explained | of that, rank of the planted line |\n|---|---|---|---|"
    )
    for program, _, advice in stored(folders):
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


@dataclasses.dataclass
class Gain:
    program: str
    finding: dict[str, Any]
    is_of_steps: bool
    measured: float

    @property
    def ratio(self) -> float:
        return float(self.finding["predicted_gain_percent"]) / self.measured

    def is_near(self, error: float) -> bool:
        return abs(self.ratio - 1) <= error

    @property
    def is_held(self) -> bool:
        lower, upper = self.finding["predicted_gain_lower_percent"], self.finding["predicted_gain_upper_percent"]
        return bool(lower - 0.5 <= self.measured <= upper + 0.5)  # measured gains are rounded


def totals(of: str, gains: list[Gain]) -> str:
    near = " | ".join(f"{sum(gain.is_near(error) for gain in gains)}" for error in NEAR)
    median = statistics.median(gain.ratio for gain in gains)
    return f"| {of} | {len(gains)} | {near} | {sum(gain.is_held for gain in gains)} | {median:.2f} |"


def score_gains(folders: list[pathlib.Path]) -> None:
    gains: list[Gain] = []
    print("| program | rule | share of | predicted | interval | measured | ratio |\n|---|---|---|---|---|---|---|")
    for program, entry, advice in stored(folders):
        named = next((f for f in advice["findings"] if f["id"] in entry["says"]), None)
        if named is None or "measured_percent" not in entry:
            continue
        gain = Gain(program.stem, named, advice["base"]["steps"] is not None, entry["measured_percent"])
        gains.append(gain)
        print(
            f"| {gain.program} | {named['id']} | {'a step' if gain.is_of_steps else 'the recording'}"
            f" | {named['predicted_gain_bound']} {named['predicted_gain_percent']:.0f} %"
            f" | {named['predicted_gain_lower_percent']:.0f} to {named['predicted_gain_upper_percent']:.0f} %"
            f" | {gain.measured:.0f} % | {gain.ratio:.2f} |",
            flush=True,
        )
    print("\n| rule | gains | within 10 % | within 30 % | in the interval | median ratio |\n|---|---|---|---|---|---|")
    for rule in sorted({gain.finding["id"] for gain in gains}):
        print(totals(rule, [gain for gain in gains if gain.finding["id"] == rule]))
    if gains:
        print(totals("all", gains))


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
    elif sys.argv[1:2] == ["--gains"]:
        score_gains([pathlib.Path(folder) for folder in sys.argv[2:]])
    else:
        main(sys.argv[1:])
