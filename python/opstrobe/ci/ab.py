# SPDX-License-Identifier: Apache-2.0
"""`opstrobe ab`: runs two programs alternately, and decides whether the second one is slower."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import time

from opstrobe._command_parser import command_parser
from opstrobe.ci.gate import REGRESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.ci.intervals import Interval

_DESCRIPTION = """\
Runs two commands alternately, as often each, in an order that is drawn by chance, and says by how much HEAD takes longer than BASE, as an
interval. What is compared is the median time of a step if the command records a trace, else the time that the command takes. A
command that runs 'opstrobe run' without -o records one. Of the first traces counts are compared, too, as by
'opstrobe diff --gate counts'. With --clock cpu the CPU time of the commands is compared, which other programs on the machine
change less.

  opstrobe ab -- ./base.sh ./head.sh
  opstrobe ab --pairs 30 -- 'cd main && opstrobe run train.py' 'cd branch && opstrobe run train.py'

The exit status is 3 if a count of HEAD is larger or if HEAD is slower by more than the gate for certain, 0 if not, 1 if a command fails."""


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 1%")
    return value / 100


def _pairs(text: str) -> int:
    from opstrobe.ci.intervals import PAIRS_MIN

    if not text.isdecimal() or int(text) < PAIRS_MIN:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {PAIRS_MIN} on: fewer pairs decide nothing")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("ab", _DESCRIPTION, "opstrobe ab [options] -- BASE HEAD")
    parser.add_argument("--pairs", type=_pairs, default=15, metavar="N", help="runs of each command (default: 15)")
    parser.add_argument("--gate", type=_percent, default=0.01, metavar="PERCENT",
                        help="how much slower HEAD may be (default: 1%%)")  # fmt: skip
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", metavar="CLOCK",
                        help="wall (the default) or cpu: user and system time of the command and its processes")  # fmt: skip
    parser.add_argument("--format", choices=("text", "json", "github", "gitlab"), default="text", metavar="FORMAT",
                        help="text (the default), json, github (workflow commands) or gitlab (a code quality report)")  # fmt: skip
    parser.add_argument("base", metavar="BASE", help="shell command")
    parser.add_argument("head", metavar="HEAD", help="shell command")
    return parser


class _Failed(Exception):
    pass


def run(command: str, trace: str, clock: str = "wall") -> tuple[str, float]:
    """Runs a command. Returns what is measured and its duration in seconds: the CPU time; or a median step if the command recorded
    one, else the command."""
    words = [command] if os.path.isfile(command) and os.access(command, os.X_OK) else ["sh", "-c", command]
    if words[0] == command:
        words[0] = os.path.abspath(command)
    # Measuring the machine would be part of the duration of a command.
    environment = {**os.environ, "OPSTROBE_OUTPUT": trace, "OPSTROBE_ROOF": "0"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(words, env=environment, stdout=sys.stderr)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise _Failed(f"{shlex.quote(command)} failed with status {done.returncode}")
    if clock == "cpu":
        return "CPU time", after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    step = _step_seconds(trace) if os.path.exists(trace) else None
    return ("command", seconds) if step is None else ("step", step)


def _step_seconds(trace: str) -> float | None:
    from opstrobe.query.api import sql

    (found,) = sql("select median(dur_ns) / 1e9 from steps", trace).fetchall()
    return None if found[0] is None else float(found[0])


def _print_progress(done: int, pairs: int) -> None:
    """On a terminal, a line that the next one replaces."""
    if sys.stderr.isatty():
        text = f"opstrobe ab: {done} of {pairs} pairs" if done < pairs else ""
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, folder: str) -> tuple[Interval, list[float], list[float]]:
    from opstrobe.ci.intervals import compare

    draw = random.SystemRandom()
    measured: set[str] = set()
    times: dict[str, list[float]] = {"base": [], "head": []}
    for i in range(options.pairs):
        for name in draw.sample(["base", "head"], 2):
            trace = os.path.join(folder, f"{name}.{i}.json.gz")
            what, seconds = run(getattr(options, name), trace, options.clock)
            measured.add(what)
            if len(measured) > 1:
                raise _Failed("only some of the runs have recorded steps")
            times[name].append(seconds)
            if i and os.path.exists(trace):
                os.unlink(trace)
        _print_progress(i + 1, options.pairs)
    return compare(times["base"], times["head"]), times["base"], times["head"]


def main() -> None:
    options = _parser().parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="opstrobe-ab-") as folder:
            interval, base, head = measure(options, folder)
            traces = [os.path.join(folder, f"{name}.0.json.gz") for name in ("base", "head")]
            raise SystemExit(
                _report(options, interval, base, head, traces if all(map(os.path.exists, traces)) else None)
            )
    except (_Failed, ImportError, OSError, ValueError) as error:
        print(f"opstrobe ab: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _report(
    options: argparse.Namespace, interval: Interval, base: list[float], head: list[float], traces: list[str] | None
) -> int:
    from opstrobe.ci import annotate

    changes = []
    if traces is not None:
        from opstrobe.ci import counts

        changes = counts.compare(*traces)
    slower = interval.lower > options.gate
    more, time_of = ("longer", "time") if options.clock == "wall" else ("more", "CPU time")
    text = (
        f"HEAD takes {100 * interval.estimate:+.2f} % of the {time_of} of BASE {more} (99.9 % interval: {100 * interval.lower:+.2f} % to "
        f"{100 * interval.upper:+.2f} %, {len(base)} pairs of runs)"
    )
    if options.format == "json":
        found = json.loads(annotate.text(changes, "json"))
        found["regression"] |= slower
        print(
            json.dumps(
                {**found, "slower": slower, "time": dataclasses.asdict(interval), "base": base, "head": head}, indent=1
            )
        )
    elif options.format == "gitlab":
        found = json.loads(annotate.text(changes, "gitlab"))
        if slower:
            found.append({"description": text, "check_name": "opstrobe/time", "fingerprint": "opstrobe-time", "severity": "major",
                          "location": {"path": "opstrobe", "lines": {"begin": 1}}})  # fmt: skip
        print(json.dumps(found, indent=1))
    else:
        with contextlib.suppress(BrokenPipeError):
            if options.format == "github":
                sys.stdout.write(annotate.text(changes, "github"))
                print(f"::{'error' if slower else 'notice'} title=opstrobe::{text}".replace("%", "%25"))
            else:
                sys.stdout.write(annotate.text(changes, "text") if traces is not None else "")
                print(("regression: " if slower else "") + text)
    return REGRESSION if slower or any(change.is_regression for change in changes) else 0


if __name__ == "__main__":
    main()
