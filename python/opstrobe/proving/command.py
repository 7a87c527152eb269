# SPDX-License-Identifier: Apache-2.0
"""`opstrobe prove`: measures the gain of fixes of findings in a program, by switching them on and off while it runs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import opstrobe
from opstrobe._command_parser import command_parser, split_program
from opstrobe._plain import print_message
from opstrobe.ci.intervals import PAIRS_MIN
from opstrobe.launcher.output import Output
from opstrobe.launcher.program import Program, UsageError
from opstrobe.proving import report
from opstrobe.proving.child import Task
from opstrobe.proving.fixes import FIXES
from opstrobe.proving.plan import PAIRS, STEPS_MAX, Blocks, blocks_for, gain_of, judge
from opstrobe.proving.programs import WARM_UP_STEPS
from opstrobe.proving.report import Proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

_FAILED, _USAGE, _CHANGED = 1, 2, 3
_VALUE_OPTIONS = {"--fix", "--pairs", "--steps", "--format", "-o", "--output"}
_RECORDED_STEPS = 8
# A run with a fix in all steps or in none continues until its steps have taken this many seconds.
_RUN_S = 10.0

_DESCRIPTION = """\
Runs a Python program with fixes of findings switched on and off, and says what each saves of a step, as an interval, and whether the
results of the program stay the same.

The program runs once as usual. A few of its steps are recorded in a second run, and 'opstrobe advise' finds what can be fixed. Then it
runs once for each fix, which is on in alternate blocks of steps, in an order that is drawn by chance. A fix that cannot be switched
between steps is on in alternate runs, as often as there are pairs. These further runs print nothing and end as soon as
enough is measured. Files that the program writes are written in each run.

A program that sets no seed draws the same random numbers in each run: its results can be compared.

The exit status is that of the program if that is not 0. Else it is 3 if a fix changes results, 1 if none of the requested fixes
could be measured, and 0 if not."""
_EXAMPLES = ("prove train.py --epochs 1", "prove --fix channels-last --steps 100 -o proved.json.gz train.py")


class _Failed(Exception):
    pass


def _pairs(text: str) -> int:
    if not text.isdecimal() or int(text) < PAIRS_MIN:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {PAIRS_MIN} on: fewer pairs decide nothing")
    return int(text)


def _steps(text: str) -> int:
    if not text.isdecimal() or int(text) < 3:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of steps from 3 on")
    return int(text)


def _fix(text: str) -> str:
    if text not in FIXES:
        raise argparse.ArgumentTypeError(f"'{text}' is not a fix (choose from {', '.join(FIXES)})")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "prove",
        _DESCRIPTION,
        _EXAMPLES,
        "opstrobe prove [options] <script.py | -m module | -c code> [arguments of the program]",
    )
    parser.add_argument("--list", action="store_true", help="list the fixes, with the findings that they belong to")
    parser.add_argument("--fix", action="append", type=_fix, default=[], metavar="NAME",
                        help="measure this fix even without a finding; may be repeated")  # fmt: skip
    parser.add_argument("--pairs", type=_pairs, metavar="N",
                        help=f"most pairs of blocks (default: {PAIRS}), or pairs of runs (default: {PAIRS_MIN})")  # fmt: skip
    parser.add_argument("--steps", type=_steps, metavar="N",
                        help="also end the first run after N steps (default: run to the end)")  # fmt: skip
    parser.add_argument("--format", choices=("text", "json"), default="text", metavar="FORMAT",
                        help="text (the default) or json; with json the program prints to standard error")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write the recorded trace, with what was measured, to FILE or a directory, as 'opstrobe run' does; "
                        "'opstrobe advise' shows it. With --fix nothing is recorded unless this is given")  # fmt: skip
    return parser


def _fail(message: str, status: int) -> NoReturn:
    print_message("opstrobe prove", message)
    raise SystemExit(status)


def _say(message: str) -> None:
    print_message("opstrobe prove", message)


class _Runs:
    """Runs of the program in separate processes."""

    def __init__(self, words: Sequence[str], folder: str) -> None:
        self._words = words
        self._folder = folder

    def _command(self, task: Task) -> list[str]:
        code = "import sys\nif sys.path[:1] == ['']: del sys.path[0]\nfrom opstrobe.proving.child import main\nmain()"
        return [sys.executable, "-c", code, json.dumps(dataclasses.asdict(task)), *self._words]

    def usual(self, steps: int | None, stdout: Any) -> dict[str, Any]:
        task = Task("usual", result=os.path.join(self._folder, "usual.json"), steps=steps or 0)
        status = subprocess.run(self._command(task), stdout=stdout).returncode
        if status:
            _say(f"the program failed with status {status}, so nothing was measured")
            raise SystemExit(status if status > 0 else 128 - status)
        try:
            with open(task.result, encoding="utf-8") as file:
                return dict(json.load(file))
        except OSError:
            raise _Failed("the program ended by os._exit(), so nothing is known of its steps") from None

    def quiet(self, task: Task, environment: dict[str, str] | None = None) -> str | None:
        """Returns why the run failed, or None."""
        with open(os.path.join(self._folder, "errors"), "w+b") as errors:
            done = subprocess.run(
                self._command(task),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **(environment or {})},
            )
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        if done.returncode == -signal.SIGINT:
            raise KeyboardInterrupt
        if done.returncode:
            return lines[-1].strip() if lines else f"exit status {done.returncode}"
        return None

    def measured(self, task: Task, environment: dict[str, str] | None = None) -> dict[str, Any]:
        """Returns the measurements; "failed" says why there are none."""
        path = os.path.join(self._folder, "measured.json")
        if os.path.exists(path):
            os.unlink(path)
        failed = self.quiet(dataclasses.replace(task, result=path), environment)
        try:
            with open(path, encoding="utf-8") as file:
                found = dict(json.load(file))
        except (OSError, ValueError):
            found = {"results": []}
        if failed is not None:
            found["failed"] = failed
        elif not found.keys() & {"refused", "head", "step_s"}:
            found["failed"] = f"the program ended after {found.get('steps', 0)} steps, fewer than in its first run"
        return found


class _Prover:
    def __init__(self, runs: _Runs, usual: dict[str, Any], pairs: int | None) -> None:
        self._runs = runs
        self._reference = usual["results"]
        self._steps = min(int(usual["steps"]), STEPS_MAX)
        steady = usual["seconds"][min(WARM_UP_STEPS, len(usual["seconds"]) // 2) :]
        self._step_s = statistics.median(steady) if steady else 0.0
        self._pairs = pairs

    def prove(self, name: str) -> Proof:
        blocks = blocks_for(self._steps, self._step_s, self._pairs or PAIRS)
        if FIXES[name].per_run or blocks is None:
            return self._in_runs(name, self._pairs or PAIRS_MIN)
        return self._in_blocks(name, blocks)

    def _in_blocks(self, name: str, blocks: Blocks) -> Proof:
        found = self._runs.measured(Task("blocks", fix=name, pairs=blocks.pairs, block=blocks.block))
        proof = _unmeasured(name, found)
        if proof is not None:
            return proof
        first_on = int(found["first_on"])
        same = judge(
            self._reference, found["results"], repeats=found["results"][:first_on],
            first_on=first_on, close_until=first_on + blocks.block, exact=FIXES[name].exact,
        )  # fmt: skip
        return Proof(name, "measured", gain=gain_of(found["base"], found["head"]), results=same, block=blocks.block)

    def _in_runs(self, name: str, pairs: int) -> Proof:
        if self._steps < 3:
            return Proof(name, "not measured", f"the program has {self._steps} steps, and 3 are needed")
        first = min(WARM_UP_STEPS, self._steps // 2)
        enough = first + 1 + max(int(_RUN_S / max(self._step_s, 1e-9)), 1)
        task = Task("run", fix=name, first=first, steps=min(self._steps, enough))
        times: dict[bool, list[float]] = {False: [], True: []}
        results: dict[bool, Any] = {}
        draw = random.SystemRandom()
        # The first run has the fix, since it may be refused.
        order = [True, False] + [is_on for _ in range(pairs - 1) for is_on in draw.sample([False, True], 2)]
        begin = time.monotonic()
        for number, is_on in enumerate(order):
            if number == 2:
                _say(f"{name}: {len(order)} runs, each of about {(time.monotonic() - begin) / 2:.0f} s")
            found = self._runs.measured(
                dataclasses.replace(task, is_on=is_on), FIXES[name].environment if is_on else None
            )
            proof = _unmeasured(name, found)
            if proof is not None:
                return proof
            times[is_on].append(found["step_s"])
            results.setdefault(is_on, found)
        first_on = int(results[True]["first_on"])
        same = judge(
            self._reference, results[True]["results"], repeats=results[False]["results"],
            first_on=first_on, close_until=first_on + 4, exact=FIXES[name].exact,
        )  # fmt: skip
        return Proof(name, "measured", gain=gain_of(times[False], times[True]), results=same)


def _unmeasured(name: str, found: dict[str, Any]) -> Proof | None:
    if "failed" in found:
        doing = "with the fix" if "first_on" in found else "before the fix was on"
        return Proof(name, "failed", f"the program failed {doing}: {found['failed']}")
    return Proof(name, "refused", found["refused"]) if "refused" in found else None


def _record(runs: _Runs, steps: int, trace: str) -> opstrobe.TraceFile:
    first = min(WARM_UP_STEPS, steps // 2)
    command = ("opstrobe", "prove", *sys.argv[1:])
    failed = runs.quiet(
        Task("record", first=first, steps=min(first + _RECORDED_STEPS, steps), trace=trace, command=command)
    )
    if failed is not None or not os.path.exists(trace):
        raise _Failed(f"cannot record the program: {failed or 'it ended too early'}")
    return opstrobe.read(trace)


def _prove(options: argparse.Namespace, words: Sequence[str], output: Output | None, folder: str) -> int:
    runs = _Runs(words, folder)
    usual = runs.usual(options.steps, sys.stderr if options.format == "json" else None)
    if usual["steps"] < 3:
        raise _Failed(
            f"the program has {usual['steps']} steps, and 3 are needed: a step ends with step() of an optimizer, or is a batch of a DataLoader"
        )
    trace = None
    findings: list[dict[str, Any]] = []
    if output is not None:
        trace = _record(runs, min(int(usual["steps"]), STEPS_MAX), os.path.join(folder, "trace.json.gz"))
        findings = trace.advise()["findings"]
    ids = [finding["id"] for finding in findings]
    names = options.fix or [name for name, fix in FIXES.items() if not set(ids).isdisjoint(fix.findings)]
    prover = _Prover(runs, usual, options.pairs)
    proofs = []
    for number, name in enumerate(names, 1):
        _say(f"measuring {name} ({number} of {len(names)})")
        proofs.append(prover.prove(name))
    path = None
    if trace is not None and output is not None:
        trace.trace.set_metadata("proof", json.dumps(report.by_finding(proofs)))
        path = output.reserve()
        trace.export_chrome_trace(path)
    if options.format == "json":
        print(json.dumps(report.as_json(proofs, findings, usual, path), indent=1))
    else:
        sys.stdout.write(report.as_text(proofs, findings, output.shown(path) if output and path else None))
    if any(proof.results is not None and proof.results.kind == "changed" for proof in proofs):
        return _CHANGED
    return _FAILED if names and not any(proof.gain for proof in proofs) and options.fix else 0


def main() -> None:
    ours, theirs = split_program(sys.argv[1:], _VALUE_OPTIONS)
    options = _parser().parse_args(ours)
    if options.list:
        sys.stdout.write(report.fixes_text() if options.format == "text" else report.fixes_json())
        return
    try:
        program = Program(theirs)
        is_recorded = options.output or not options.fix
        output = (
            Output(options.output or os.environ.get("OPSTROBE_OUTPUT"), program.name, force=False)
            if is_recorded
            else None
        )
    except (UsageError, OSError) as error:
        _fail(f"{error}; see 'opstrobe prove --help'", _USAGE)
    try:
        with tempfile.TemporaryDirectory(prefix="opstrobe-prove-") as folder:
            raise SystemExit(_prove(options, theirs, output, folder))
    except (_Failed, OSError, ValueError) as error:
        _fail(str(error), _FAILED)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
