# SPDX-License-Identifier: Apache-2.0
"""Records a program of the suite, runs the advisor, and measures what its fix gains.

A program is a file in `programs/`:

    RULE = "quadratic-concatenation"   # ids that may come first; None for a healthy program
    def build(fixed): return step      # step() is one step of the loop; with `fixed`, without the planted cause

The line that causes it ends in the comment "# planted" (several lines may). `WAITS = True` is of programs whose steps wait,
`GAINS = "memory"` of those whose fix gains something else than time. `python suite.py` prints the table of the score;
`python suite.py NAME` one program's advice.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import pathlib
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import torch

import opstrobe

PROGRAMS = pathlib.Path(__file__).parent / "programs"
WARMUP = 2
STEPS = 8


@dataclass
class Program:
    name: str
    path: pathlib.Path
    module: Any
    rules: tuple[str, ...] = ()
    lines: list[int] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        return not self.rules

    @property
    def gains(self) -> str:
        return getattr(self.module, "GAINS", "time")


def programs(folder: pathlib.Path = PROGRAMS) -> list[Program]:
    found = []
    for path in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"diagnosis_{path.stem}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        rule = module.RULE
        rules = () if rule is None else (rule,) if isinstance(rule, str) else tuple(rule)
        lines = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line.rstrip().endswith("# planted")]
        found.append(Program(path.stem, path, module, rules, lines))
    return found


def prepare(program: Program, fixed: bool) -> Any:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return program.module.build(fixed)


def record(program: Program, fixed: bool = False) -> opstrobe.profile:
    """The program's steps, in a quiet place: what it prints goes nowhere."""
    step = prepare(program, fixed)
    schedule = opstrobe.schedule(wait=0, warmup=WARMUP, active=STEPS, repeat=1)
    with contextlib.redirect_stdout(io.StringIO()):
        with opstrobe.profile(
            activities=[opstrobe.ProfilerActivity.CPU],
            schedule=schedule,
            record_shapes=True,
            with_stack=True,
            profile_memory=True,
            with_modules=True,
        ) as profile:
            for _ in range(WARMUP + STEPS):
                step()
                profile.step()
    return profile


def measure(program: Program, seconds: float = 2.0, rounds_min: int = WARMUP + STEPS) -> tuple[float, float]:
    """The quickest step without the fix and with it, in milliseconds, without a profiler: in time of the thread, which other
    programs do not add to, or wall-clock time where the program waits (`WAITS = True`).

    Steps of both take turns, so that other work on the machine is with neither of them alone.
    """
    clock = time.perf_counter if getattr(program.module, "WAITS", False) else time.thread_time
    steps = [prepare(program, fixed) for fixed in (False, True)]
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + seconds
    rounds = 0
    with contextlib.redirect_stdout(io.StringIO()):
        while time.perf_counter() < end or rounds < rounds_min:
            for which, step in enumerate(steps):
                start = clock()
                step()
                if rounds >= WARMUP:
                    best[which] = min(best[which], clock() - start)
            rounds += 1
    return best[0] * 1e3, best[1] * 1e3


@dataclass
class Verdict:
    program: Program
    findings: list[dict[str, Any]]

    @property
    def first(self) -> dict[str, Any] | None:
        return self.findings[0] if self.findings else None

    @property
    def named(self) -> dict[str, Any] | None:
        return next((f for f in self.findings if f["id"] in self.program.rules), None)

    @property
    def is_first(self) -> bool:
        return self.first is not None and self.first["id"] in self.program.rules

    @property
    def at_line(self) -> bool:
        """Whether a planted line is among the places of the finding."""
        if self.named is None:
            return False
        places = [(w["file"], w["line"]) for w in self.named["where"] if w["file"]]
        return any(pathlib.Path(f).name == self.program.path.name and n in self.program.lines for f, n in places)


def judge(program: Program) -> Verdict:
    return Verdict(program, record(program).advise()["findings"])


@dataclass
class Score:
    """What came out of the programs, and the table of it."""

    rows: list[str] = field(default_factory=list)
    planted: int = 0
    first: int = 0
    at_line: int = 0
    timed: int = 0
    close: int = 0
    healthy: int = 0
    loud: int = 0

    def add_healthy(self, verdict: Verdict) -> None:
        high = [f["id"] for f in verdict.findings if f["severity"] == "high"]
        self.healthy += 1
        self.loud += bool(high)
        found = "**" + ", ".join(high) + "**" if high else "nothing high"
        self.rows.append(f"{verdict.program.name} | none, healthy | {found} | | | ")

    def add_planted(self, verdict: Verdict, measure: Any) -> None:
        named, program = verdict.named, verdict.program
        self.planted += 1
        self.first += verdict.is_first
        self.at_line += verdict.at_line
        gain = f"{program.gains} | | "
        if program.gains == "time":
            slow, quick = measure(program)
            measured = 100 * (slow - quick) / slow
            predicted = named["predicted_gain_percent"] if named else 0.0
            ratio = predicted / measured if measured > 0 else float("nan")
            self.timed += 1
            self.close += 0.7 <= ratio <= 1.3
            bound = {"at least": "≥ ", "at most": "≤ "}.get(named["predicted_gain_bound"] if named else "", "")
            gain = f"{bound}{predicted:.0f} % | {measured:.0f} % | {ratio:.2f}"
        other = verdict.first["id"] if verdict.first else "nothing"
        self.rows.append(
            f"{program.name} | {program.rules[0]} | {'yes' if verdict.is_first else 'no: ' + other}"
            f" | {'yes' if verdict.at_line else 'no'} | {gain}"
        )

    @property
    def text(self) -> str:
        head = (
            "| program | planted cause | first | line | predicted | measured | ratio |\n|---|---|---|---|---|---|---|\n"
        )
        return (
            head
            + "\n".join(f"| {row} |" for row in self.rows)
            + f"\n\nPlanted cause first in {self.first} of {self.planted}, its line named in {self.at_line} of {self.planted},"
            f" predicted within 30 % of the measured gain in {self.close} of {self.timed}; {self.loud} of {self.healthy}"
            " healthy programs with a finding of severity high."
        )


def score(chosen: list[Program], judge: Any = judge, measure: Any = measure) -> Score:
    result = Score()
    for program in chosen:
        verdict = judge(program)
        if program.healthy:
            result.add_healthy(verdict)
        else:
            result.add_planted(verdict, measure)
    return result


def main(names: list[str], known: list[Program], judge: Any = judge, measure: Any = measure) -> None:
    chosen = [p for p in known if not names or p.name in names]
    if len(names) == 1:
        for finding in judge(chosen[0]).findings:
            places = [(pathlib.Path(w["file"] or "").name, w["line"], w["operator"]) for w in finding["where"]]
            print(finding["id"], finding["severity"], f"{finding['predicted_gain_percent']:.1f} %", places)
            print("   ", finding["evidence"])
        return
    print(score(chosen, judge, measure).text)


if __name__ == "__main__":
    main(sys.argv[1:], programs())
