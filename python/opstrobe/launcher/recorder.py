# SPDX-License-Identifier: Apache-2.0
"""Records an unmodified program: from its import of torch to its end, however it ends."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

import opstrobe
from opstrobe import ProfilerAction, _core
from opstrobe._plain import message_text
from opstrobe.compat.torch_import import call_when_imported
from opstrobe.launcher.machine_roof import measure_roof
from opstrobe.launcher.output import Output, rank_of_job
from opstrobe.launcher.own_process import plain_environment, pop_watcher, python_command
from opstrobe.launcher.processes import StartedProcess, StartedProcesses
from opstrobe.launcher.program import Program
from opstrobe.launcher.steps import StepWatch, mark_found
from opstrobe.recording import bridge, roof, spill
from opstrobe.results.results import export_trace

# Catchable signals that end a program unless it handles them. Python itself turns SIGINT into an exception.
_FATAL_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_ADVICE_EVENTS_MAX = 300_000  # with more events, the first finding is not worth the wait
# A recording for advice ends after this many steps and seconds. Longer ones say little more, and take memory.
_ADVISE_STEPS = 20
_ADVISE_S = 60
_SPILL_HINT = "; --spill DIR keeps the recording of such a program"


class CannotRecord(Exception):
    pass


class RunRecorder:
    """One per process. Call `arm`, then run the program; everything else happens automatically."""

    def __init__(
        self,
        output: Output,
        *,
        open_viewer: bool,
        steps: range | None,
        table_rows: int | None,
        module_depth: int | None,
        live_s: float | None,
        live_socket: int | None,
        archive: tuple[str, str] | None,
        advises: bool,
        with_processes: bool,
        **what: Any,
    ) -> None:
        self._output = output
        self._open_viewer = open_viewer
        self._archive = archive  # location and job
        self._path: str | None = None  # path of the trace, once it is written
        self._steps = steps
        self._table_rows = table_rows
        self._module_depth = module_depth  # None: no modules; 0: all levels
        self._live_s = live_s  # None: no live view; 0: at a default interval
        self._live_socket = live_socket
        if live_socket is not None:  # not inherited by children of the program
            os.set_inheritable(live_socket, False)
        self._advises = advises
        self._started_s = 0.0
        self._what = {**what, "with_modules": module_depth is not None or bool(what["with_stack"])}
        self._pid = os.getpid()
        self._profile: opstrobe.profile | None = None
        self._watch: StepWatch | None = None
        self._written = False
        self._unwritten = False  # a trace could not be written
        self._finishing = False
        self._deadly_signal: int | None = None
        self._measuring = False
        self._interrupted = False  # by Ctrl-C while measuring
        self._failed = False
        self._mask = threading.local()
        self._watcher = pop_watcher()
        self._children = 0  # number of processes started by this one
        self._processes = (
            StartedProcesses(
                self._what,
                garbage_collections=advises,
                ends_early=advises or steps is not None,
            )
            if with_processes
            else None
        )
        self._apart: list[StartedProcess] = []  # those with separate traces

    def arm(self) -> None:
        """From now on the program's import of torch starts the recording, and its end writes the trace."""
        if importlib.util.find_spec("torch") is None:
            self._start()  # the program's own ranges are recorded even without torch
        else:
            call_when_imported(self._torch_imported)
        self._count_spawned()
        self._report_exit()
        self._watch_signals()
        self._say_left_behind()
        atexit.register(self._finish)
        for number in _FATAL_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._die)
        os.register_at_fork(before=self._hold_signals, after_in_parent=self._forked, after_in_child=self._forget)

    def run(self, program: Program) -> None:
        """Runs the program, and ends it. To be called once, after `arm`, as the last action."""
        try:
            program.run()
        except SystemExit as end:
            if end.code is not None and not (isinstance(end.code, int) and end.code == 0):
                raise
        except BaseException:
            self._failed = True
            raise
        if os.getpid() == self._pid:
            self._end_program()

    def _end_program(self) -> None:
        """Does what the interpreter does when a program has succeeded, while its exit status may still change."""
        try:
            threading._shutdown()  # type: ignore[attr-defined]
        except BaseException:  # Ctrl-C while threads run
            _print(traceback.format_exc())
        with contextlib.suppress(BaseException):  # which have been printed
            atexit._run_exitfuncs()
        if self._unwritten:
            sys.exit(1)

    # --- recording ---------------------------------------------------------------------------------------------------

    def _torch_imported(self) -> None:
        if bridge.info().get("found") is None:
            _say("compiling the bridge to this torch, once …")
        children = self._children
        try:
            self._start()
            self._children = children  # a compiler is not a process of the program
        except CannotRecord as error:
            # Better to fail now than after hours. The program is at its import of torch and has done nothing yet.
            _say(f"{error}; 'opstrobe doctor' says why")
            raise SystemExit(1) from None
        self._watch = StepWatch(self._end_step, _say)
        if self._processes is not None:
            try:
                self._processes.record(self._watch)
            except OSError as error:
                _say(f"processes that the program starts are not recorded: {error}")

    def _start(self) -> None:
        profile = opstrobe.profile(
            schedule=None if self._steps is None else self._action_of_step,
            on_trace_ready=self._write,
            experimental_config=opstrobe._ExperimentalConfig(
                profile_all_threads=True, record_python_gc_info=self._advises
            ),
            **self._what,
        )
        try:
            profile.start()
        except Exception as error:
            self._written = True  # there is nothing to report at the end
            raise CannotRecord(f"cannot record: {error}") from error
        self._profile = profile
        self._started_s = time.monotonic()
        self._watch_signals()
        if self._live_socket is not None:
            _core.live_start(self._live_socket, 0.5, True)
        elif self._live_s is not None:
            _core.live_start(2, self._live_s)

    def _action_of_step(self, step: int) -> ProfilerAction:
        assert self._steps is not None
        if step not in self._steps:
            return ProfilerAction.NONE
        return ProfilerAction.RECORD_AND_SAVE if step == self._steps[-1] else ProfilerAction.RECORD

    def _end_step(self, begin: int, end: int) -> None:
        if self._profile is None or self._written:
            return
        if self._steps is None:
            mark_found(self._profile, begin, end)
            if not self._has_enough():
                return
        try:
            if self._steps is None:
                self._stop()
            else:
                self._profile.step()
        except Exception as error:
            self._give_up(error)
        self._watch_signals()
        if self._deadly_signal is not None:  # it arrived while measuring
            self._finish()
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def _has_enough(self) -> bool:
        """Whether a recording without --steps is long enough for advice. Ranks of a job do not decide this apart."""
        assert self._profile is not None
        return (
            self._advises
            and self._output.rank is None
            and self._profile.step_num >= _ADVISE_STEPS
            and time.monotonic() - self._started_s >= _ADVISE_S
        )

    # --- forks -------------------------------------------------------------------------------------------------------

    def _hold_signals(self) -> None:
        """A signal that reached a child before it removed our handler would be lost, so signals are blocked until
        then."""
        self._mask.before_fork = signal.pthread_sigmask(signal.SIG_BLOCK, _FATAL_SIGNALS)

    def _forked(self) -> None:
        self._children += 1
        self._release_signals()

    def _release_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask.before_fork)

    def _forget(self) -> None:
        """Runs in a forked child, which this recorder does not record and which is to be ended by signals like any process."""
        self._profile = None
        self._written = True
        if self._watch is not None:
            self._watch.stop()
        for number in _FATAL_SIGNALS:
            if signal.getsignal(number) == self._die:
                signal.signal(number, signal.SIG_DFL)
        self._release_signals()

    def _count_spawned(self) -> None:
        """Counts the processes started by subprocess and multiprocessing, for which Python has no hook."""
        module: Any = importlib.import_module("_posixsubprocess")
        user: Any = importlib.import_module("subprocess")
        fork_exec = module.fork_exec

        @functools.wraps(fork_exec)
        def counted(*args: Any) -> Any:
            before = self._children
            process = fork_exec(*args)
            # With a preexec_fn the process was also counted as a fork.
            self._children = before + (not _is_resource_tracker(args[0]))
            return process

        module.fork_exec = counted
        if getattr(user, "_fork_exec", None) is fork_exec:  # from Python 3.11 on
            user._fork_exec = counted

    def _report_exit(self) -> None:
        """os._exit ends a process immediately. multiprocessing ends forked children with it, which are not recorded."""
        exit_now = os._exit

        @functools.wraps(exit_now)
        def reported(status: int) -> Any:
            if os.getpid() == self._pid and not self._written:
                _say("no trace was written: the program ended by os._exit()" + (self._recovery_hint() or _SPILL_HINT))
                _core.watch_fatal_signals(False)
            exit_now(status)

        os._exit = reported

    def _recovery_hint(self) -> str:
        """The end of the message that no trace was written."""
        path = self._profile.profiler.spill_path if self._profile is not None and self._profile.profiler else None
        return "" if path is None else f"; to recover the recording: opstrobe recover {shlex.quote(path)}"

    def _watch_signals(self) -> None:
        """Makes the death by a signal be reported, with how to recover the recording."""
        if self._written:
            _core.watch_fatal_signals(False)
            return
        hint = self._recovery_hint()
        killed = _line(
            "no trace was written: the program was killed by SIGKILL, which the system also sends when memory runs out, or ended by _exit() in C"
            + (hint or _SPILL_HINT)
        )
        _core.watch_fatal_signals(True, hint or _SPILL_HINT, f"a{killed}", self._watcher)

    def _say_left_behind(self) -> None:
        """Reports recordings left by programs that were killed."""
        directory = self._what["spill"]
        if directory is None:
            return
        paths = spill.left_behind(directory)
        if len(paths) == 1:
            _say(
                f"a program was killed while it recorded; to make a trace of it: opstrobe recover {shlex.quote(paths[0])}"
            )
        elif paths:
            _say(
                f"{len(paths)} programs were killed while they recorded; to make traces of them: "
                f"opstrobe recover {shlex.quote(os.path.abspath(directory))}"
            )

    # --- the end -----------------------------------------------------------------------------------------------------

    def _die(self, number: int, _: FrameType | None) -> None:
        self._deadly_signal = number
        if not (self._finishing or self._measuring):
            self._finish()

    def _finish(self) -> None:
        """Writes the trace if that has not been done, then dies of the signal that arrived, if any."""
        self._finishing = True
        _core.live_stop()
        try:
            if not self._written:
                self._stop()
        except KeyboardInterrupt:
            self._unwritten = True
            _say(f"interrupted while writing '{self._output.path}'")
        except Exception as error:
            self._give_up(error)
        _core.watch_fatal_signals(False)
        if self._deadly_signal is None and self._open_viewer and self._path is not None:
            self._serve(self._path)
        if self._deadly_signal is not None:
            signal.signal(self._deadly_signal, signal.SIG_DFL)
            signal.raise_signal(self._deadly_signal)

    def _give_up(self, error: Exception) -> None:
        """A failure of the recording must not affect the program, except for its exit status if it succeeds."""
        self._written = self._unwritten = True
        if isinstance(error, MemoryError):
            _say("no trace was written: out of memory; record fewer steps (--steps), or less of them (--max-bytes)")
        else:
            _say(f"no trace was written: {str(error) or type(error).__name__}{self._recovery_hint()}")

    def _stop(self) -> None:
        if self._profile is None:
            _say("no trace was written: the program did not import torch")
            self._say_children()
            return
        if self._profile.profiler is not None:
            self._profile.profiler.check_spill()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # _write reports losses
            self._profile.stop()
        if not self._written:
            assert self._steps is not None
            self._unwritten = True
            _say(
                f"no trace was written: the program ended in step {self._profile.step_num}, "
                f"before step {self._steps.start} that --steps begins with"
            )

    def _write(self, profile: opstrobe.profile) -> None:
        self._written = True
        _core.live_stop()
        self._collect_processes(profile)
        if self._wants_roof(profile):
            self._measure_roof(profile)
        recording = profile.profiler
        assert recording is not None
        if self._apart and not profile.step_num and recording.trace is not None and _only_calls_python(recording.trace):
            paths = self._write_ranks()
            traces = [process.trace for process in self._apart]
        else:
            paths = [self._write_own(profile), *self._write_apart()]
            assert recording.trace is not None
            # A process that only waits for its ranks says nothing.
            waits = self._apart and not profile.step_num
            traces = [process.trace for process in self._apart] if waits else [recording.trace]
        if self._advises and not self._output.rank:
            self._print_advice(traces)
        elif sum(trace.event_count for trace in traces) <= _ADVICE_EVENTS_MAX:
            self._say_first_finding(traces)
        self._say_children()
        if self._archive is not None:
            for each in paths:
                self._add_to_archive(each, *self._archive)
        if self._output.rank == 0 or self._apart:
            directory = self._output.shown(os.path.join(self._output.directory, "")) or os.curdir
            _say(f"to view all ranks, when they have ended: opstrobe serve --open {shlex.quote(directory)}")
        elif not self._open_viewer and self._output.rank is None:
            _say(f"to view it: opstrobe serve --open {shlex.quote(self._output.shown(paths[0]))}")

    def _write_own(self, profile: opstrobe.profile) -> str:
        """Writes the trace of this process, and what the user wants to see of it. Returns its path."""
        path = self._output.reserve()
        try:
            profile.export_chrome_trace(path)
        except BaseException:
            self._output.drop(path)
            raise
        self._has_path(path)
        if self._table_rows is not None:
            averages = profile.key_averages(group_by_input_shape=profile.record_shapes)
            _print(averages.table(sort_by="self_cpu_time_total", row_limit=self._table_rows))
        if self._module_depth is not None:
            _print(profile.module_summary().table(depth=self._module_depth or None))
        recording = profile.profiler
        assert recording is not None and recording.trace is not None
        lost = (
            f"{recording.trace.lost:,} LOST (out of memory, see --max-bytes)" if recording.trace.lost else "none lost"
        )
        size = _core.format_bytes(os.path.getsize(path))
        _say(f"wrote {self._output.shown(path)}: {recording.trace.event_count:,} events, {lost}, {size}")
        return path

    def _write_ranks(self) -> list[str]:
        """Writes the traces of the ranks alone: this process, such as torchrun, did nothing but start them. They are named after the
        program that they run, if it is another one."""
        program, ending = os.path.splitext(self._apart[0].name)
        if ending == ".py":
            self._output.name_after(program)
        paths = self._write_apart()
        if not paths:
            raise OSError("none of the traces of ranks could be written")
        self._has_path(paths[0])
        return paths

    def _has_path(self, path: str) -> None:
        self._path = path
        if self._live_socket is not None:
            with contextlib.suppress(OSError):
                os.write(self._live_socket, json.dumps({"trace": path}).encode())

    def _collect_processes(self, profile: opstrobe.profile) -> None:
        """Gets what the processes recorded that the program started."""
        if self._processes is None:
            return
        started = self._processes.collect(_say)
        self._children -= self._processes.recorded
        self._apart = sorted(
            (process for process in started if process.is_apart), key=lambda process: (process.rank or 0, process.name)
        )
        if self._apart:
            profile.add_metadata_json(
                "recorded_apart", str(len(self._apart))
            )  # known to src/analyze/advice/rule_in_step.c
        joined = [(process.name, process.trace) for process in started if not process.is_apart]
        if joined and profile.profiler is not None:
            try:
                profile.profiler.add_processes(joined)
            except MemoryError:  # the program's own recording matters more
                _say(
                    f"out of memory: what {len(joined)} processes recorded is left out; --one-process records none of it"
                )

    def _write_apart(self) -> list[str]:
        """Writes the traces of processes that have their own, and returns their paths."""
        paths = []
        for process in self._apart:
            part = f"rank{process.rank}" if process.rank is not None else re.sub(r"[^\w.-]", "_", process.name)
            path = self._output.reserve(part)
            try:
                export_trace(process.trace, path)
            except (OSError, MemoryError) as error:
                self._output.drop(path)
                self._unwritten = True
                _say(f"the trace of {process.name} was not written: {error}")
                continue
            size = _core.format_bytes(os.path.getsize(path))
            _say(f"wrote {self._output.shown(path)}: {process.trace.event_count:,} events of {process.name}, {size}")
            paths.append(path)
        return paths

    def _wants_roof(self, profile: opstrobe.profile) -> bool:
        """Whether to measure what this machine can compute and move, which advice compares operators with. Only once for a
        machine, and not if the user waits for the end of a program that failed or was interrupted. In a job, only on rank
        0, and only when the program has ended, since other ranks may wait for this one."""
        torch: Any = sys.modules.get("torch")
        rank = self._output.rank
        return (
            torch is not None
            and (profile.record_shapes or profile.with_flops)
            and os.environ.get("OPSTROBE_ROOF") != "0"
            and not (self._failed or self._deadly_signal is not None)
            and (rank is None or (rank == 0 and self._steps is None))
            and not torch.cuda.is_initialized()
            and roof.is_wanted()
        )

    def _measure_roof(self, profile: opstrobe.profile) -> None:
        _say("measuring once what this machine can compute and move, a few seconds; OPSTROBE_ROOF=0 skips it …")
        children = self._children
        self._measuring = True
        try:
            found = measure_roof(lambda: self._deadly_signal is not None)
            if found is None and self._deadly_signal is None:
                _say("not measured: the machine is busy or has little free memory; 'opstrobe roof' measures it")
            elif found is not None:
                profile.add_metadata_json("roof", found)
        except KeyboardInterrupt:
            self._interrupted = not self._finishing
        except Exception as error:  # the trace matters more
            _say(f"not measured: {error}")
        self._measuring = False
        self._children = children  # not a process of the program

    def _add_to_archive(self, path: str, location: str, job: str) -> None:
        words = ["add", location, path, "--job", job]
        children = self._children
        # Clients of object stores start threads, which this process cannot any more at its end.
        command = python_command("from opstrobe.archiving.command import main; main()", words)
        try:
            done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True)
            reason = done.stderr.strip().removeprefix("opstrobe archive: ") if done.returncode else None
        except KeyboardInterrupt:
            reason = "interrupted"
        except Exception as error:  # the program's exit and its trace matter more
            reason = str(error)
        self._children = children  # not a process of the program
        if reason is None:
            _say(f"added to '{location}' as a trace of job '{job}'")
        else:
            _say(f"not added to '{location}': {reason}; later: {shlex.join(['opstrobe', 'archive', *words])}")

    def _print_advice(self, traces: Sequence[_core.Trace]) -> None:
        """Prints the advice for a trace, or for all ranks."""
        try:
            _print("\n" + traces[0].advice_text(traces[1:]))
        except Exception as error:  # the trace matters more
            _say(f"no advice: {error}")

    def _say_first_finding(self, traces: Sequence[_core.Trace]) -> None:
        with contextlib.suppress(Exception):  # the trace matters more than the finding
            advice = json.loads(traces[0].advice_json(traces[1:]))
            if advice["findings"]:
                _say(f"first finding: {_finding_text(advice['findings'][0], advice['base']['steps'])}")
            elif most := _most_time(advice["not_explained"]):
                _say(f"no finding; most time: {most}")

    def _serve(self, path: str) -> None:
        """Shows the trace in the browser until Ctrl-C."""
        from opstrobe._server import serve

        try:
            with serve(path, watch=False, open_browser=True) as server:
                _say(f"serving {server.url} until Ctrl-C")
                threading.Event().wait()
        except KeyboardInterrupt:
            pass
        except (OSError, NotImplementedError) as error:
            _say(f"cannot serve '{path}': {error}")

    def _say_children(self) -> None:
        if self._children > 0:
            were = "child process ran and was" if self._children == 1 else "child processes ran and were"
            _say(f"{self._children} {were} not recorded; to record one, use 'opstrobe run' or opstrobe.profile in it")


def _only_calls_python(trace: _core.Trace) -> bool:
    return set(json.loads(trace.query("info", "{}"))["value"]["events_by_kind"]) <= {"python_function"}


def _is_resource_tracker(words: Sequence[str | bytes]) -> bool:
    """Returns whether a command line is that of the process which multiprocessing starts to clean up after the others."""
    return any(b"multiprocessing.resource_tracker" in os.fsencode(word) for word in words)


def _place_text(place: dict[str, Any]) -> str:
    line = f":{place['line']}" if place["line"] else ""
    return f"{os.path.relpath(place['file']) if os.path.isabs(place['file']) else place['file']}{line}"


def _most_time(rest: dict[str, Any] | None) -> str:
    """One line: the line of the program with most time that no finding explains, and what it does; "" without lines."""
    line = next((line for line in rest["lines"] if line["file"]), None) if rest else None
    return f"{_place_text(line)}, {line['text']}" if line else ""


def _finding_text(finding: dict[str, Any], steps: int | None) -> str:
    """One line: what, where, and the predicted gain."""
    place = next((place for place in finding["where"] if place["file"]), None)
    text = str(finding["title"])
    if place is not None:
        text += f", {_place_text(place)}"
    if finding["predicted_gain_percent"] is not None and finding["predicted_gain_percent"] >= 0.1:
        bound = {"at least": "at least ", "at most": "at most "}.get(finding["predicted_gain_bound"], "about ")
        of = "a step" if steps else "the recording"
        warning = f"; {finding['predicted_gain_warning']}" if finding["predicted_gain_warning"] else ""
        text += f" (saves {bound}{_core.format_percent(finding['predicted_gain_percent'])} of {of}{warning})"
    return text


def _print(text: str) -> None:
    # The program may have closed standard error, and the following steps matter more.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(text, file=sys.stderr, flush=True)


def _say(message: str) -> None:
    _print(_line(message))


def _line(message: str) -> str:
    rank = rank_of_job()  # lines of all ranks are interleaved
    return message_text("opstrobe" if rank is None else f"opstrobe: rank {rank}", message)
