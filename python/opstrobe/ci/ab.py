# SPDX-License-Identifier: Apache-2.0
"""`opstrobe ab`: runs two programs alternately, and decides whether the second one is slower."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import time

from opstrobe._command_parser import command_parser
from opstrobe._core import format_change
from opstrobe._plain import print_message
from opstrobe.ci.gate import REGRESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.ci.intervals import Interval
    from opstrobe.ci.sequential import Comparison, Decision, Verdict

UNDECIDED = 4  # exit status

_DESCRIPTION = """\
Runs two commands alternately, in pairs whose order is drawn by chance, until it is settled whether HEAD takes longer than BASE by more than the gate.
Compared are the median time of a step if the commands record a trace, else the time that the commands take. A command that runs 'opstrobe run'
without -o records one. CPU time is compared as well and can decide, because other programs on the machine change it less. Of the first traces
counts are compared, too, as by 'opstrobe diff --gate counts'.

The exit status is 3 if a count of HEAD is larger or if HEAD is slower by more than the gate, 0 if not, 4 if that was not settled after the most
pairs or minutes, 1 if a command fails."""
_EXAMPLES = (
    "ab -- ./base.sh ./head.sh",
    "ab --gate 2% -- 'cd main && opstrobe run train.py' 'cd branch && opstrobe run train.py'",
)


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 1%")
    return value / 100


def _pairs(text: str) -> int:
    from opstrobe.ci.sequential import PAIRS_MIN

    if not text.isdecimal() or int(text) < PAIRS_MIN:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {PAIRS_MIN} on: fewer pairs decide nothing")
    return int(text)


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not value > 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return value


def parser() -> argparse.ArgumentParser:
    made = command_parser("ab", _DESCRIPTION, _EXAMPLES, "opstrobe ab [options] -- BASE HEAD")
    made.add_argument("--gate", type=_percent, default=0.01, metavar="PERCENT",
                      help="how much slower HEAD may be (default: 1%%)")  # fmt: skip
    made.add_argument("--pairs", type=_pairs, default=300, metavar="N", help="most runs of each command (default: 300)")
    made.add_argument("--minutes", type=_minutes, default=60.0, metavar="M", help="start no pair after M minutes (default: 60)")  # fmt: skip
    made.add_argument("--clock", choices=("auto", "wall", "cpu"), default="auto", metavar="CLOCK",
                      help="wall; cpu: user and system time of the command and its processes; or auto (the default): both, or the time of steps")  # fmt: skip
    made.add_argument("--format", choices=("text", "json", "github", "gitlab"), default="text", metavar="FORMAT",
                      help="text (the default), json, github (workflow commands) or gitlab (a code quality report)")  # fmt: skip
    made.add_argument("base", metavar="BASE", help="shell command")
    made.add_argument("head", metavar="HEAD", help="shell command")
    return made


# Durations of 0 have no ratio.
_TICK_S = 1e-9
# In a log, progress is reported this often at most.
_REPORT_S = 60


class _Failed(Exception):
    pass


def run(command: str, trace: str, clock: str = "auto") -> dict[str, float]:
    """Runs a command. Returns its duration in seconds by clock: "step", the median step, if it has recorded one, else "wall" and "cpu". Other values of
    `clock` than "auto" select one of them."""
    words = [command] if os.path.isfile(command) and os.access(command, os.X_OK) else ["sh", "-c", command]
    if words[0] == command:
        words[0] = os.path.abspath(command)
    # Measuring the machine would be part of the duration of a command.
    environment = {**os.environ, "OPSTROBE_OUTPUT": trace, "OPSTROBE_ROOF": "0"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(words, env=environment, stdout=sys.stderr)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise _Failed(f"{shlex.quote(command)} failed with status {done.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if clock == "cpu":
        return {"cpu": max(cpu, _TICK_S)}
    step = _step_seconds(trace) if os.path.exists(trace) else None
    if step is not None:
        return {"step": max(step, _TICK_S)}
    return {"wall": wall} if clock == "wall" else {"wall": wall, "cpu": max(cpu, _TICK_S)}


def _step_seconds(trace: str) -> float | None:
    from opstrobe.query.api import sql

    (found,) = sql("select median(dur_ns) / 1e9 from steps", trace).fetchall()
    return None if found[0] is None else float(found[0])


class _Progress:
    """On a terminal, a line that the next one replaces; in a log, a line a minute at most."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._start = self._reported = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self._start) / 60

    def report(self, comparison: Comparison, last: Decision | None) -> None:
        if not self._is_terminal and time.monotonic() - self._reported < _REPORT_S:
            return
        self._reported = time.monotonic()
        left = self.minutes / comparison.pairs * comparison.pairs_left(last)
        left = max(0.0, min(left, self._options.minutes - self.minutes))
        found = f", HEAD {_interval_text(last.clocks[last.clock].interval)}" if last is not None else ""
        text = f"opstrobe ab: {comparison.pairs} of at most {comparison.looks[-1]} pairs{found}, about {_duration_text(left)} left"
        print(
            f"\r{text}\033[K" if self._is_terminal else text,
            end="" if self._is_terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        if self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _duration_text(minutes: float) -> str:
    return f"{60 * minutes:.0f} s" if minutes < 1.5 else f"{minutes:.0f} min"


def _interval_text(interval: Interval) -> str:
    def percent(value: float) -> str:
        return format_change(100 * value)

    if math.isinf(interval.lower) and math.isinf(interval.upper):
        return f"{percent(interval.estimate)} (too few pairs for an interval)"
    if math.isinf(interval.lower):
        return f"{percent(interval.estimate)} (at most {percent(interval.upper)})"
    return f"{percent(interval.estimate)} ({percent(interval.lower)} to {percent(interval.upper)})"


def measure(options: argparse.Namespace, folder: str) -> tuple[Decision, Comparison]:
    """Runs pairs until the question is decided, or until there are as many as allowed or no more time."""
    from opstrobe.ci.sequential import Comparison, Verdict

    draw = random.SystemRandom()
    comparison = Comparison(options.gate, options.pairs)
    progress = _Progress(options)
    decision = None
    try:
        while comparison.pairs < options.pairs and (not comparison.pairs or progress.minutes < options.minutes):
            runs = {}
            for name in draw.sample(["base", "head"], 2):
                trace = os.path.join(folder, f"{name}.{comparison.pairs}.json.gz")
                runs[name] = run(getattr(options, name), trace, options.clock)
                if comparison.pairs and os.path.exists(trace):
                    os.unlink(trace)
            if {*runs["base"]} != {*runs["head"]} or {*(comparison.base or runs["base"])} != {*runs["base"]}:
                raise _Failed("only some of the runs have recorded steps")
            comparison.add(runs["base"], runs["head"])
            if comparison.pairs in comparison.looks:
                decision = comparison.decide()
                if decision.verdict is not Verdict.UNDECIDED:
                    break
            progress.report(comparison, decision)
    finally:
        progress.end()
    if decision is None or decision.pairs < comparison.pairs:
        decision = comparison.decide()
    return decision, comparison


def main() -> None:
    options = parser().parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="opstrobe-ab-") as folder:
            decision, comparison = measure(options, folder)
            traces = [os.path.join(folder, f"{name}.0.json.gz") for name in ("base", "head")]
            raise SystemExit(
                _report(options, decision, comparison, traces if all(map(os.path.exists, traces)) else None)
            )
    except (_Failed, ImportError, OSError, ValueError) as error:
        print_message("opstrobe ab", error)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


_CLOCKS = {"step": "median step", "wall": "wall-clock time", "cpu": "CPU time"}


def _verdict_text(decision: Decision, gate: float) -> str:
    from opstrobe.ci.sequential import Verdict

    limit = f"{100 * gate:g} %"
    if decision.verdict is Verdict.UNDECIDED:
        return (
            f"inconclusive after {decision.pairs} pairs of runs: HEAD may or may not take more than {limit} longer; "
            "more pairs, a larger gate or a quieter machine may decide"
        )
    answer = (
        "regression: HEAD takes more than"
        if decision.verdict is Verdict.SLOWER
        else "no regression: HEAD takes at most"
    )
    return f"{answer} {limit} longer ({_CLOCKS[decision.clock]}, {decision.pairs} pairs of runs)"


def _clock_texts(decision: Decision) -> list[str]:
    return [
        f"{_CLOCKS[clock]} of HEAD: {_interval_text(bounds.interval)}, {bounds.verdict.value}"
        for clock, bounds in decision.clocks.items()
    ]


def _json(decision: Decision, comparison: Comparison) -> dict[str, object]:
    from opstrobe.ci.sequential import Verdict

    def fields(interval: Interval) -> dict[str, float | None]:
        return {name: None if math.isinf(value) else value for name, value in dataclasses.asdict(interval).items()}

    return {
        "slower": decision.verdict is Verdict.SLOWER,
        "verdict": decision.verdict.value,
        "pairs": decision.pairs,
        "clock": decision.clock,
        "time": fields(decision.clocks[decision.clock].interval),
        "clocks": {
            name: {**fields(bounds.interval), "verdict": bounds.verdict.value, "base": comparison.base[name], "head": comparison.head[name]}
            for name, bounds in decision.clocks.items()
        },
    }  # fmt: skip


def _print_gitlab(found: list[dict[str, object]], verdict: Verdict, text: str) -> None:
    from opstrobe.ci.sequential import Verdict

    if verdict is not Verdict.NOT_SLOWER:
        severity = "major" if verdict is Verdict.SLOWER else "info"
        found.append({"description": text, "check_name": "opstrobe/time", "fingerprint": "opstrobe-time", "severity": severity,
                      "location": {"path": "opstrobe", "lines": {"begin": 1}}})  # fmt: skip
    print(json.dumps(found, indent=1))


def _report(options: argparse.Namespace, decision: Decision, comparison: Comparison, traces: list[str] | None) -> int:
    from opstrobe.ci import annotate
    from opstrobe.ci.sequential import Verdict

    changes = []
    if traces is not None:
        from opstrobe.ci import counts

        changes = counts.compare(*traces)
    is_regression = decision.verdict is Verdict.SLOWER or any(change.is_regression for change in changes)
    verdict, details = _verdict_text(decision, options.gate), _clock_texts(decision)
    with contextlib.suppress(BrokenPipeError):
        if options.format == "json":
            found = {
                **json.loads(annotate.text(changes, "json")),
                **_json(decision, comparison),
                "regression": is_regression,
            }
            print(json.dumps(found, indent=1))
        elif options.format == "gitlab":
            found = json.loads(annotate.text(changes, "gitlab"))
            _print_gitlab(found, decision.verdict, "; ".join([verdict, *details]))
        elif options.format == "github":
            level = {Verdict.SLOWER: "error", Verdict.UNDECIDED: "warning", Verdict.NOT_SLOWER: "notice"}[
                decision.verdict
            ]
            sys.stdout.write(annotate.text(changes, "github"))
            print(f"::{level} title=opstrobe::{'; '.join([verdict, *details])}".replace("%", "%25"))
        else:
            sys.stdout.write(annotate.text(changes, "text") if traces is not None else "")
            print("\n  ".join([verdict, *details]))
    if is_regression:
        return REGRESSION
    return UNDECIDED if decision.verdict is Verdict.UNDECIDED else 0


if __name__ == "__main__":
    main()
