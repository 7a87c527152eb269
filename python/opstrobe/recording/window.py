# SPDX-License-Identifier: Apache-2.0
"""One recorded window: from its preparation to its trace and its events."""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
import weakref

from opstrobe import _core
from opstrobe._warn import warn
from opstrobe.recording import metadata, thread_names, thread_start
from opstrobe.recording.activities import left_out_by
from opstrobe.recording.configured import Configured
from opstrobe.recording.forks import first_use
from opstrobe.results.results import Results, export_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from opstrobe.recording.session_config import SessionConfig
    from opstrobe.recording.stats import _ProfilerStats
    from opstrobe.recording.tensors import TensorWatch
    from opstrobe.results.trace_file import TraceFile

# The current recording, so that interpreter exit can end it. Weak: a dropped recording ends by itself.
_running: weakref.ref[Recording] | None = None


def _stop_at_exit() -> None:
    recording = _running() if _running else None
    if recording is not None:
        recording.discard()


atexit.register(_stop_at_exit)


def is_recording() -> bool:
    recording = _running() if _running else None
    return recording is not None and recording.running


def _set_torch_profiling(recording: bool) -> None:
    """Torch annotates what it compiles while it believes that a profiler records."""
    profiler = sys.modules.get("torch.autograd.profiler")
    if profiler is not None:
        profiler._set_is_profiler_enabled(recording)


def _synchronize() -> str | None:
    """Waits for the device within the window, as torch does; for other devices the collector waits afterwards. Returns
    why that failed; a device may be lost. If the program has not used a device, torch would create a context for it,
    which takes time and memory, so this does nothing then."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError as error:
        return f"they could not be waited for: {str(error).partition(chr(10))[0]}"
    return None


class Recording(Configured, Results):
    """The operations `prepare`, `start` and `stop`, and the results. For one window only.

    `earlier` is the trace of earlier windows whose events are also listed. `warned` holds the warnings about devices in
    earlier windows, which are not repeated.
    """

    def __init__(
        self, config: SessionConfig, *, earlier: _core.Trace | None = None, warned: set[str] | None = None
    ) -> None:
        self._config = config
        self.trace_id = ""
        self._warned = set() if warned is None else warned
        self.use_device: str | None = None  # set when a device is found
        self._devices = config.device_kinds
        self._device_events: str | None = (
            None  # also set then: the device whose events time operators if no collector runs
        )
        self._sampling = config.sampling
        self._watch: TensorWatch | None = None
        self.trace: _core.Trace | None = None
        self._forward_backward = True  # known at the stop
        self._left_out = left_out_by(config.activity_filters or {})
        self._earlier = earlier
        self._whole: _core.Trace | None = None
        self._events: _core.EventList | None = None
        self._duration_ns = {"prepare": 0, "enable": 0, "disable": 0, "build": 0}
        self._stats_object: _ProfilerStats | None = None
        self._with_torch = False
        self._session: _core.Session | None = None
        self._stop_device_problem: str | None = None
        self._ended = False
        self._spill_path: str | None = None  # path of the recording file
        self._spill_pid = 0  # the process that it belongs to
        self._spill_warned = False
        self.gives_way = False  # to a recording that the program itself starts

    @property
    def record_shapes(self) -> bool:
        return self._config.record_shapes or self._config.with_flops

    @property
    def trace_only(self) -> bool:
        return bool(self._config.experimental["trace_only"])

    def prepare(self, trace_id: str) -> None:
        """Prepares everything so that `start` is quick."""
        begin = time.perf_counter_ns()
        running = _running() if _running else None
        if running is not None and running.gives_way:
            running.discard()
        self.trace_id = trace_id
        self._with_torch = sys.modules.get("torch") is not None
        if self._with_torch:
            with first_use:
                from opstrobe.recording import bridge  # slow to import, and useless without torch

                bridge.load()
            if self.profile_memory:
                with first_use:
                    from opstrobe.recording.tensors import TensorWatch

                self._watch = TensorWatch(brief=self._config.ring_seconds is not None)
        self._session = _core.Session(
            **self._config.session_arguments(),
            devices=self._devices if self.use_device == "cuda" else (),
            **self._sampling_options(),
            device_events=self._device_events,
            **self._spill_options(),
        )
        self._duration_ns["prepare"] = time.perf_counter_ns() - begin

    def _sampling_options(self) -> dict[str, Any]:
        """What to sample, on the current device of a program that already uses CUDA."""
        if self._sampling is None or self.use_device != "cuda":
            return {}
        torch = sys.modules.get("torch")
        device = torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0
        metrics, interval_ns = self._sampling
        return {"metrics": metrics, "metrics_interval_ns": interval_ns, "metrics_device": device}

    def _spill_options(self) -> dict[str, Any]:
        if self._config.spill is None:
            return {}
        with first_use:
            from opstrobe.recording import spill

        self._spill_path, self._spill_pid = spill.new_path(self._config.spill), os.getpid()
        return {"spill": self._spill_path}

    @property
    def spill_path(self) -> str | None:
        """The file that contains the recording until `remove_spill`; None: there is none."""
        return self._spill_path if self._spill_pid == os.getpid() else None

    def note_metadata(self, key: str, text: str) -> None:
        """Also stores metadata in the recording file while it is recorded."""
        if self._spill_path is not None and self.running:
            assert self._session is not None
            self._session.note_metadata(key, text)

    def snapshot(self, seconds: float | None = None) -> TraceFile:
        """Returns what was recorded so far, or in the last `seconds`. The recording continues."""
        from opstrobe.results.trace_file import TraceFile

        if self._session is None or not self.running:
            raise RuntimeError("cannot make a snapshot: this profile does not record")
        if seconds is not None and not 0 < seconds < 2**33:
            raise ValueError(f"seconds must be a positive number or None, got {seconds}")
        last_ns = 0 if seconds is None else max(1, int(seconds * 1e9))
        return TraceFile(self._spill_path or "", self._session.snapshot(last_ns=last_ns))

    def apply_detail(self) -> None:
        """Removes what is called in each step for detail that the black box has switched off, or puts it back."""
        with_allocations = _core.watch_apply_detail()
        if self._watch is not None and self.running:
            self._watch.observe_steps(with_allocations)

    def check_spill(self) -> None:
        """Warns, once, if the recording file does not contain everything that was recorded."""
        if self._spill_path is None or self._spill_warned or self._session is None:
            return
        problem = self._session.spill_problem
        if problem is not None:
            self._spill_warned = True
            warn(f"{problem}; the recording goes on in memory, and its end will be lost if the program is killed")

    def remove_spill(self) -> None:
        """Removes the recording file, since the results replace it."""
        path = self.spill_path
        if path is not None and self.finished:
            self._spill_path = None
            _core.remove_recording_file(path)

    @property
    def finished(self) -> bool:
        return self._ended

    @property
    def running(self) -> bool:
        return self._session is not None and self._session.running

    def start(self) -> None:
        global _running
        begin = time.perf_counter_ns()
        assert self._session is not None
        if self._watch is not None:
            self._watch.prepare()
        self._session.start()
        self._sample_stacks()
        self.check_spill()
        if self._session.refused_events is not None:
            names, why = self._session.refused_events
            warn(f"performance events that cannot be counted here and are left out: {', '.join(names)} ({why})")
        if self._session.device_problem is not None and self._session.times_operators:
            self._warn_of_events(self._session.device_problem)
        elif self._session.device_problem is not None:
            self._warn_of_devices(f"CUDA is not recorded: {self._session.device_problem}")
            self.use_device = None
        if self._session.metrics_problem is not None:
            self._warn_of_devices(f"counters of CUDA's hardware are not sampled: {self._session.metrics_problem}")
        if self._watch is not None:
            self._watch.start()
        _set_torch_profiling(True)
        _running = weakref.ref(self)
        thread_names.record_all()
        thread_start.watch()
        self._duration_ns["enable"] = time.perf_counter_ns() - begin

    def _sample_stacks(self) -> None:
        samples = self._config.stack_samples
        if samples is None:
            return
        _core.stack_sampler_stop()  # that of a recording that was dropped
        obstacle = _core.stack_sampler_start(*samples)
        if obstacle is not None:  # the recording is useful even without samples
            warn(f"Python stacks are not sampled: {obstacle}")

    def toggle(self, enable: bool) -> None:
        """Pauses or resumes the current recording."""
        if self._session is not None:
            if enable:
                self._session.resume()
            else:
                self._session.pause()

    def toggle_devices(self, enable: bool) -> None:
        """The same for the activities of devices."""
        if self._session is not None:
            self._session.toggle_devices(enable)

    def name_threads(self) -> None:
        if self.running:
            thread_names.record_all()
            self.check_spill()

    def stop(self) -> None:
        """Ends the window. It has no trace if it was not started, or in a process forked since. After a MemoryError the
        next call continues: recording has stopped, and nothing is lost."""
        session = self._session
        if session is None or not (session.running or session.pending):
            self._session, self._ended = None, True
            return
        begin = time.perf_counter_ns()
        self.check_spill()
        if session.running:
            _core.stack_sampler_stop()
            self._stop_device_problem = _synchronize() if self.use_device is not None else None
            _set_torch_profiling(False)
            thread_names.record_all()
            thread_start.end()
            if self._watch is not None:
                session.end_window()  # examining all tensors takes a while and is not work of the program
                self._watch.stop()
        self._forward_backward = _core.forward_backward_enabled()
        trace = session.stop()
        self._session, self._ended = None, True
        trace.set_metadata("trace_id", metadata.json_of_text("trace_id", self.trace_id))
        problem = self._stop_device_problem
        if session.times_operators:
            trace.set_metadata("device_times", '"events around operators"')
            trace.set_metadata("device_times_of", json.dumps(self.use_device))
        self.trace = trace.without(self._left_out) if self._left_out else trace
        self._events = None  # there may be a list of earlier windows only
        self._duration_ns["disable"] = time.perf_counter_ns() - begin
        if self.use_device is not None:
            problem = problem or session.device_problem
        self._warn_of_gaps(self.trace, session.displaced, problem)

    def add_processes(self, named: Sequence[tuple[str, _core.Trace]]) -> None:
        """Adds what processes recorded that this one has started."""
        assert self.trace is not None
        self.trace = self.trace.with_processes(named)
        self._events = None

    def discard(self) -> None:
        """Ends the window without a trace."""
        if self.running:
            _core.stack_sampler_stop()
        if self._watch is not None:
            self._watch.cancel()
        _set_torch_profiling(False)
        thread_start.end()
        self._session, self._ended = None, True

    def _warn_of_devices(self, problem: str) -> None:
        """Warns about a problem that prevents devices from being recorded, in the first window that has it."""
        if problem not in self._warned:
            self._warned.add(problem)
            warn(problem)

    def _warn_of_events(self, why: str) -> None:
        """Warns that device work is not recorded but timed."""
        assert self.use_device is not None
        self._warn_of_devices(
            f"{self.use_device.upper()} is timed by events around operators, so kernels, copies and streams are missing: {why}"
        )

    def _warn_of_gaps(self, trace: _core.Trace, displaced: bool, device_problem: str | None) -> None:
        if displaced:
            warn(
                "another profiler was set on a thread while this profile recorded: "
                "Python calls of that thread may be missing (before Python 3.12)"
            )
        if device_problem is not None:
            missing = f" ({trace.lost} records are missing)" if trace.lost else ""
            device = (self.use_device or "cuda").upper()
            self._warn_of_devices(f"the record of {device}'s devices may be incomplete: {device_problem}{missing}")
        elif trace.lost:
            warn(f"{trace.lost} records could not be kept and are missing from the profile")
        if not self._with_torch and sys.modules.get("torch") is not None:
            warn(
                "torch was imported while this profile recorded, so it has no operators; "
                "import torch before the profile starts"
            )

    # --- results -----------------------------------------------------------------------------------------------------

    @property
    def whole_trace(self) -> _core.Trace | None:
        """The trace, appended to that of the earlier windows if these are kept; None if there is none."""
        if self.trace is None or self._earlier is None:
            return self.trace or self._earlier
        if self._whole is None:
            self._whole = self._earlier.followed_by(self.trace)
        return self._whole

    @property
    def function_events(self) -> _core.EventList:
        """The events, created at the first call; an empty list until there is a trace."""
        if self.trace_only:
            raise RuntimeError("this profile has no events: it was made with trace_only")
        trace = self.whole_trace
        if trace is None:
            return _core.EventList(
                use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
            )
        if self._events is None:
            begin = time.perf_counter_ns()
            self._events = self._list_events(trace, self._config.post_processing_timeout_s)
            self._duration_ns["build"] = time.perf_counter_ns() - begin
            if self._stats_object is not None:
                self._update_stats(self._stats_object)
            if self._events.timed_out:
                self._log_timeout()
        return self._events

    def _list_events(self, trace: _core.Trace, timeout_s: float | None = None) -> _core.EventList:
        return trace.function_events(
            use_device=self.use_device,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            timeout_s=timeout_s,
        )

    def _log_timeout(self) -> None:
        import logging

        logging.getLogger("torch.autograd.profiler").warning(  # the logger that torch uses for it
            "events() timed out after post_processing_timeout_s=%s: it has partial results (%d events); the trace has all",
            self._config.post_processing_timeout_s,
            len(self._events or ()),
        )

    def total_average(self) -> _core.FunctionEventAvg:
        """The sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the events' self CPU time, in us."""
        return self.function_events.self_cpu_time_total

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace of this window, in the format given by the path's suffix."""
        trace = self._finished(self.trace, "export a trace")
        export_trace(trace, path, self._config.experimental["verbose"], self._forward_backward)

    def _trace_for(self, doing: str) -> _core.Trace:
        return self._finished(self.whole_trace, doing)

    def _finished(self, trace: _core.Trace | None, doing: str) -> _core.Trace:
        if trace is None:
            state = "is still recording" if self.running else "has recorded nothing"
            raise RuntimeError(f"cannot {doing}: this profile {state}")
        return trace

    def _events_for(self, doing: str) -> _core.EventList:
        return self.function_events

    def _memory_timeline(self, doing: str) -> _core.MemoryTimeline:
        if self.trace is None:
            raise AssertionError(f"Profiler must have recorded something before {doing}")
        if not self.profile_memory:
            raise ValueError(f"profile_memory=True required for {doing}")
        return _core.MemoryTimeline(self.trace)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total", *, fold_wrappers: bool = False
    ) -> None:
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._trace_for("export stacks")
        super().export_stacks(path, metric, fold_wrappers=fold_wrappers)

    def module_summary(self) -> _core.ModuleSummary:
        if not (self.with_modules or self.with_stack):
            raise RuntimeError("module_summary() needs a profile made with with_modules=True")
        return super().module_summary()

    @property
    def _stats(self) -> _ProfilerStats:
        """The overhead of profiling. A single object that is updated when events are created, as in torch."""
        from opstrobe.recording.stats import _ProfilerStats

        if self._stats_object is None:
            self._stats_object = _ProfilerStats()
        self._update_stats(self._stats_object)
        return self._stats_object

    def _update_stats(self, stats: _ProfilerStats) -> None:
        took_us = {step: -(-ns // 1000) for step, ns in self._duration_ns.items()}
        if self.trace is not None:
            stats.profiling_window_duration_sec = (self.trace.stop_ns - self.trace.start_ns) / 1e9
        stats.number_of_events = 0 if self._events is None else len(self._events)
        stats.profiler_prepare_call_duration_us = took_us["prepare"]
        stats.profiler_enable_call_duration_us = took_us["enable"]
        stats.profiler_disable_call_duration_us = took_us["disable"]
        # The events are created in one step; torch takes two.
        stats.parse_kineto_call_duration_us = took_us["build"]
        stats.function_events_build_tree_call_duration_us = took_us["build"]
