# SPDX-License-Identifier: Apache-2.0
"""One run of the program for `opstrobe prove`, in a separate process: as usual, recorded, or with a fix in some steps.

The first argument is the task as JSON; the program with its arguments follows.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import importlib
import importlib.util
import json
import os
import random
import sys
import time
from typing import Any, NoReturn

import opstrobe
from opstrobe.compat.torch_import import call_when_imported
from opstrobe.launcher.output import Output
from opstrobe.launcher.program import Program
from opstrobe.launcher.recorder import RunRecorder
from opstrobe.launcher.steps import StepWatch
from opstrobe.proving.fixes import FIXES, Fix
from opstrobe.proving.plan import STEPS_MAX
from opstrobe.proving.programs import WARM_UP_STEPS, WatchedProgram
from opstrobe.recording import provenance
from opstrobe.recording.host_info import schedule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SEED = 20_011


@dataclasses.dataclass(frozen=True)
class Task:
    """`kind`: "usual", "record", "blocks" (of steps with the fix, and without), or "run" (all with the fix or without)."""

    kind: str
    result: str = ""  # the file for the measurements
    fix: str = ""
    is_on: bool = False
    pairs: int = 0
    block: int = 0
    first: int = 0  # for "record" and "run": the first step that counts
    steps: int = 0  # the run ends at this step; 0: when the program ends
    trace: str = ""
    command: tuple[str, ...] = ()


def _seed() -> None:
    """A program that does not set seeds draws other random numbers in each run, so its results could not be
    compared."""
    random.seed(_SEED)
    if importlib.util.find_spec("numpy") is not None:
        importlib.import_module("numpy").random.seed(_SEED)
    call_when_imported(lambda: importlib.import_module("torch").manual_seed(_SEED))


def _leave(status: int = 0) -> NoReturn:
    """Ends the process before the program can save what steps with a fix have computed."""
    processes: Any = sys.modules.get("multiprocessing")
    for child in processes.active_children() if processes is not None else ():
        child.terminate()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


class _BriefRecorder(RunRecorder):
    def _write(self, profile: opstrobe.profile) -> None:
        super()._write(profile)
        _leave()

    def _wants_roof(self, profile: opstrobe.profile) -> bool:
        return False  # what needs one has no fix to prove


class ProvingRun:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._pid = os.getpid()
        self._program: WatchedProgram | None = None
        self._fix: Fix | None = None
        self._run: Iterator[None] = iter(())
        self._since = time.perf_counter()
        self._elapsed = 0.0  # time in steps since the clock was restarted
        self._waited = 0.0
        self._steps = 0
        self._found: dict[str, Any] = {"seconds": []}

    def arm(self) -> None:
        call_when_imported(self._torch_imported)
        atexit.register(self._write)

    def _torch_imported(self) -> None:
        self._program = WatchedProgram()
        if self._task.fix:
            self._fix = FIXES[self._task.fix](self._program)
            if self._task.is_on or not self._fix.per_run:
                self._fix.prepare()
        self._run = {"usual": self._as_usual, "blocks": self._in_blocks, "run": self._at_once}[self._task.kind]()
        next(self._run)
        self._watch = StepWatch(self._end_step, lambda _: None)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _end_step(self, *_: int) -> None:
        if os.getpid() != self._pid:
            return
        assert self._program is not None
        seconds = time.perf_counter() - self._since
        self._elapsed += seconds
        self._steps += 1
        if self._steps <= STEPS_MAX:
            self._found["seconds"].append(seconds)
            self._program.end_step()
        next(self._run)
        self._since = time.perf_counter()  # time since then belongs to no step

    def _restart_clock(self) -> None:
        assert self._program is not None
        self._program.synchronize()
        self._elapsed = 0.0
        self._waited = self._waits_s()

    def _read_clock(self) -> float:
        """Seconds since the clock was restarted. Excludes time between steps, and time in which this thread was ready
        to run while others had the processors. The latter is noise, except for a fix that changes how many threads
        run."""
        assert self._program is not None and self._fix is not None
        start = time.perf_counter()
        self._program.synchronize()
        elapsed = self._elapsed + time.perf_counter() - start
        if self._fix.changes_parallelism:
            return elapsed
        return max(elapsed - (self._waits_s() - self._waited), 1e-9)

    @staticmethod
    def _waits_s() -> float:
        return schedule_of("/proc/thread-self/schedstat")[1] / 1e9

    def _as_usual(self) -> Iterator[None]:
        while not self._task.steps or self._steps < self._task.steps:
            yield
        self._end()

    def _refuse(self) -> None:
        assert self._fix is not None
        reason = self._fix.refusal()
        if reason is not None:
            self._found["refused"] = reason
            self._end()

    def _switch(self, is_on: bool) -> None:
        assert self._fix is not None
        if is_on and "first_on" not in self._found:
            self._found["first_on"] = self._steps
        (self._fix.on if is_on else self._fix.off)()

    def _in_blocks(self) -> Iterator[None]:
        draw = random.SystemRandom()
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(WARM_UP_STEPS):
            yield
        self._refuse()
        for pair in range(self._task.pairs + 1):
            for is_on in draw.sample([False, True], 2):
                self._switch(is_on)
                yield
                self._restart_clock()
                for _ in range(self._task.block - 1):
                    yield
                if pair:
                    times[is_on].append(self._read_clock() / (self._task.block - 1))
        self._found |= {"base": times[False], "head": times[True]}
        self._end()

    def _at_once(self) -> Iterator[None]:
        assert self._fix is not None
        if self._task.is_on and self._fix.per_run:
            self._found["first_on"] = 0
        for _ in range(self._task.first):
            yield
        if self._task.is_on:
            self._refuse()
            if not self._fix.per_run:
                self._switch(True)
                yield
        else:
            yield
        first = self._steps
        self._restart_clock()
        while self._steps < self._task.steps:
            yield
        self._found["step_s"] = self._read_clock() / (self._steps - first)
        self._end()

    # --- the end -----------------------------------------------------------------------------------------------------

    def _end(self) -> NoReturn:
        self._write()
        _leave()

    def _write(self) -> None:
        if os.getpid() != self._pid:
            return
        results = self._program.results() if self._program is not None else []
        with open(self._task.result, "w", encoding="utf-8") as file:
            json.dump({**self._found, "steps": self._steps, "results": results}, file)


def _record(task: Task, program: Program) -> None:
    provenance.set_command(task.command)
    _BriefRecorder(
        Output(task.trace, program.name, force=True),
        open_viewer=False,
        steps=range(task.first, task.steps),
        table_rows=None,
        module_depth=0,
        live_s=None,
        live_socket=None,
        archive=None,
        advises=False,
        with_processes=False,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=False,
        max_bytes=None,
        spill=None,
    ).arm()


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    program = Program(sys.argv[2:])
    _seed()
    if task.kind == "record":
        _record(task, program)
    else:
        ProvingRun(task).arm()
    program.run()
