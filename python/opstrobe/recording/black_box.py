# SPDX-License-Identifier: Apache-2.0
"""The black box: continuously records a program and keeps the last part."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import re
import sys
from dataclasses import replace

import opstrobe
from opstrobe import _core
from opstrobe._plain import print_message
from opstrobe._warn import warn
from opstrobe.blackbox import triggers
from opstrobe.recording import spill as recording_files
from opstrobe.recording.stack import parse_sample_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from opstrobe.launcher.steps import StepWatch
    from opstrobe.results.trace_file import TraceFile

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_LEAST_BYTES = 2**20
_LEFT_BEHIND_MAX = 4  # limit on kept recordings of killed programs, which occupy memory


def _remove_old(path: str) -> None:
    """Removes all but the newest recordings of killed programs."""
    with contextlib.suppress(OSError):
        left = sorted(recording_files.left_behind(path), key=os.path.getmtime)
        for old in left[:-_LEFT_BEHIND_MAX]:
            os.unlink(old)


def parse_budget(budget: float | str) -> float:
    """Parses 0.01 or "1%". Raises ValueError if it is not a share of a step from 0 to 1."""
    text = str(budget).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"budget must be a share of a step from 0 to 1, such as 0.01 or '1%', not {budget!r}")
    return share


def parse_bytes(size: int | str) -> int:
    """Parses "256MB", "256M" and "256MiB" as 256 * 2**20. Raises ValueError if it is not a size, or too small."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]?)(?:i?B)?", str(size), re.IGNORECASE)
    count = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if not _LEAST_BYTES <= count < 2**63:
        raise ValueError(f"max_bytes must be a size of at least 1 MB, such as '256MB', not {size!r}")
    return count


_steps: StepWatch | None = None


class black_box:
    """Records the program from `start` to `stop`, or within a `with` block, and keeps the last part: events older than
    `seconds` are dropped, and the oldest ones when `max_bytes` ("256MB", or a number) are used up.

    `snapshot` returns its contents; `opstrobe dump` does so from outside. The recording is a file in a private
    directory in shared memory, or in `spill`. If the program is killed, `opstrobe recover` converts it to a trace.
    Otherwise the file is removed.

    `on` selects the triggers of incidents, which `opstrobe incidents` lists: a slow step, no step and no operator for
    `hang_seconds`, an unhandled error or one that leaves the `with` block, a failed allocation, a signal that ends the
    process. Incidents are kept in the directory `incidents`.

    The overhead of recording is measured continuously: one step in 4, and later one in 192, is a shadow step, of which
    hardly anything is recorded. While the overhead exceeds `budget`, a share of a step (0.01 or "1%"; 0: no limit),
    less is recorded: no operators, then no allocations, calls of modules and ranges either. Steps are always recorded,
    tiny ones in groups.

    Every `sample_ms` milliseconds, the Python stacks of all threads are sampled from outside the interpreter (0: never).

    Operators, modules, allocations, steps and garbage collections are recorded. Only one recording can run at a time:
    while a black box records, `profile` cannot.
    """

    def __init__(
        self,
        seconds: float = 60,
        max_bytes: int | str = "256MB",
        *,
        on: Iterable[str] = triggers.TRIGGERS,
        hang_seconds: float = 120,
        budget: float | str = 0.01,
        sample_ms: float | str = 20,
        incidents: str | os.PathLike[str] | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        if not 0 < seconds < 2**33:
            raise ValueError(f"seconds must be a positive number, not {seconds}")
        self.seconds = seconds
        self.max_bytes = parse_bytes(max_bytes)
        self._directory = recording_files.shared_directory() if spill is None else os.path.abspath(os.fspath(spill))
        self._on = triggers.checked(on)
        self._hang_seconds = hang_seconds
        self.budget = parse_budget(budget)
        self.sample_ms = parse_sample_ms(sample_ms)
        self._incidents = None if incidents is None else os.fspath(incidents)
        self._profile: Any = None
        self._collection_ticks = 0
        self._pid = 0

    @property
    def path(self) -> str | None:
        """The path of the recording file; None while nothing is recorded."""
        return None if self._profile is None or self._profile.profiler is None else self._profile.profiler.spill_path

    def start(self) -> None:
        """Starts recording. Raises RuntimeError if something else is recording, and OSError if the directory of the
        recording file cannot be used."""
        if self._profile is not None:
            raise RuntimeError("this black box is recording already")
        recording_files.make_private(self._directory)
        _remove_old(self._directory)
        profile = opstrobe.profile(
            profile_memory=True,
            with_modules=True,
            max_bytes=self.max_bytes,
            spill=self._directory,
            experimental_config=opstrobe._ExperimentalConfig(profile_all_threads=True),
        )
        profile._config = replace(profile._config, ring_seconds=self.seconds, sample_ms=self.sample_ms)
        profile.start()
        self._profile, self._pid = profile, os.getpid()
        gc.callbacks.append(self._collected)
        self._watch_for_incidents()
        if "torch" in sys.modules:
            self._watch_steps()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Ends the recording and removes it. A second call does nothing."""
        profile, self._profile = self._profile, None
        if profile is None:
            return
        atexit.unregister(self.stop)
        if self._pid == os.getpid():
            triggers.stop()
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._collected)
        if _steps is not None:
            _steps.stop()
        if self._pid == os.getpid() and profile.profiler is not None:
            profile.profiler.discard()
            profile.profiler.remove_spill()

    def snapshot(self, seconds: float | None = None) -> TraceFile:
        """Returns the last events, or those of the last `seconds`, like a trace file. The recording continues."""
        if self._profile is None:
            raise RuntimeError("cannot make a snapshot: this black box does not record")
        trace: TraceFile = self._profile.snapshot(seconds)
        return trace

    def __enter__(self) -> black_box:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._pid == os.getpid():
            triggers.report_error(error, traceback)
        self.stop()

    def _watch_for_incidents(self) -> None:
        assert self.path is not None
        try:
            triggers.start(
                self._incidents,
                page=self.path.removesuffix(recording_files.SUFFIX) + triggers.PAGE_SUFFIX,
                recording=self.path,
                on=self._on,
                hang_seconds=self._hang_seconds,
                budget=self.budget,
            )
        except (OSError, RuntimeError) as error:  # the recording is useful even without incidents
            warn(f"incidents are not kept: {error}")

    def _watch_steps(self) -> None:
        """All black boxes of the process share one watch, so that torch's optimizer classes are wrapped only once."""
        global _steps
        from opstrobe.launcher.steps import StepWatch

        ended = None if _core.watch_is_on() else self._end_unwatched_step
        if _steps is None:
            _steps = StepWatch(ended, warn, self._each_second)
        else:
            _steps.restart(ended, self._each_second)

    def _each_second(self) -> None:
        """Called between two steps about once a second."""
        if self._profile is not None and self._profile.profiler is not None and self._pid == os.getpid():
            self._profile.profiler.check_spill()
            self._profile.profiler.apply_detail()
            if _steps is not None:
                _steps.quicken()

    def _end_unwatched_step(self, begin: int, end: int) -> None:
        if self._profile is not None and self._pid == os.getpid():
            self._profile._mark_step(begin, end)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Called by Python's collector before and after each collection."""
        if phase == "start":
            self._collection_ticks = _core.ticks()
        elif self._collection_ticks:
            _core.add_range("Python GC", self._collection_ticks, _core.ticks())


_of_process: black_box | None = None


def start_at_import() -> None:
    """Starts a black box as soon as the program has imported torch. Implements OPSTROBE_BLACK_BOX=1, here and in
    programs that this one starts. OPSTROBE_BLACK_BOX may also be a number of seconds, OPSTROBE_BLACK_BOX_BYTES the size
    limit of the recording, OPSTROBE_BLACK_BOX_BUDGET the limit of its overhead, and OPSTROBE_BLACK_BOX_SAMPLE_MS the
    interval of stack samples."""
    global _of_process
    from opstrobe.compat.torch_import import call_with_torch

    if _of_process is not None:  # Python may read the line that calls this from several directories
        return
    try:
        text = os.environ.get("OPSTROBE_BLACK_BOX", "1")
        seconds = 60.0 if text == "1" else float(text)
        _of_process = black_box(
            seconds,
            os.environ.get("OPSTROBE_BLACK_BOX_BYTES", "256MB"),
            budget=os.environ.get("OPSTROBE_BLACK_BOX_BUDGET", "1%"),
            sample_ms=os.environ.get("OPSTROBE_BLACK_BOX_SAMPLE_MS", "20"),
        )
    except ValueError as error:
        _say(f"OPSTROBE_BLACK_BOX has no effect: {error}")
        return
    call_with_torch(_start_of_process)


def _start_of_process() -> None:
    """The program, which does not import Opstrobe, must also work without it."""
    assert _of_process is not None
    try:
        _of_process.start()
    except Exception as error:
        _say(f"nothing is recorded: {error}; 'opstrobe doctor' reports why")


def _say(message: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the program may have closed standard error
        print_message("opstrobe", message)
