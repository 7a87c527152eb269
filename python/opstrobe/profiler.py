# SPDX-License-Identifier: Apache-2.0
"""The profile: torch.profiler.profile and torch.profiler._KinetoProfile, on Opstrobe's recorder."""

from __future__ import annotations

import os
import time

from opstrobe import _core
from opstrobe._core import EventList, ModuleSummary, record_function
from opstrobe._core import _RecordFunctionFast as _RecordFunctionFast
from opstrobe._enums import DeviceType, ProfilerAction, ProfilerActivity, RecordScope, as_member
from opstrobe._warn import warn
from opstrobe.autograd_profiler import check_graph_options, kineto_available, private_device
from opstrobe.autograd_profiler import profile as _Window
from opstrobe.recording import host_info, metadata, provenance
from opstrobe.recording.activities import filters_of, kinds_of_extensions, parse_activities, sampling_of
from opstrobe.recording.configured import Configured, option
from opstrobe.recording.execution_trace import ExecutionTraceObserver
from opstrobe.recording.execution_trace import _ITraceObserver as _ITraceObserver
from opstrobe.recording.experimental_config import (
    _ExperimentalConfig,
    check_experimental,
    without_trace_only,
)
from opstrobe.recording.forks import first_use
from opstrobe.recording.handlers import tensorboard_trace_handler
from opstrobe.recording.schedule import schedule
from opstrobe.recording.stack import StackOptions
from opstrobe.recording.step_tracker import KinetoStepTracker
from opstrobe.results.results import Results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any

    from opstrobe.recording.activity_configs import ProfilerActivityConfig
    from opstrobe.recording.stats import _ProfilerStats
    from opstrobe.results.memory import MemoryProfile, MemoryProfileTimeline
    from opstrobe.results.trace_file import TraceFile

    Activities = Iterable[ProfilerActivity | Mapping[ProfilerActivity, list[str] | ProfilerActivityConfig | None]]

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

# Devices that activities select. The first one that is present becomes `use_device`.
_DEVICES = {
    ProfilerActivity.CUDA: "cuda",
    ProfilerActivity.XPU: "xpu",
    ProfilerActivity.MTIA: "mtia",
    ProfilerActivity.HPU: "hpu",
    ProfilerActivity.PrivateUse1: "",  # has a different name in each process
}


def supported_activities() -> set[ProfilerActivity]:
    """Returns what this machine and this build can record."""
    cuda = {ProfilerActivity.CUDA} if _core.cuda()[1] is None else set()
    return {ProfilerActivity.CPU} | cuda


_warned_of_replacement = False


def _warn_of_replacement() -> None:
    global _warned_of_replacement
    if not _warned_of_replacement:
        _warned_of_replacement = True
        warn("Profiler clears events at the end of each cycle: take the results of each in on_trace_ready")


class _KinetoProfile(Configured, Results):
    """A profile without steps: `start` and `stop`, then the results.

    `max_bytes` limits the memory of a running recording, by default to a quarter of the memory of the machine or
    control group. Events beyond it are counted as lost.

    `spill` is a directory, made if it does not exist, for a file that contains the recording while it runs. If the
    program is killed, `opstrobe recover` converts the file to a trace. The file is removed once the profile has stopped
    and `on_trace_ready` has returned.
    """

    record_shapes: bool = option()
    max_bytes: int | None = option()

    def __init__(
        self,
        *,
        activities: Activities | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool | StackOptions = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        max_bytes: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        with first_use:
            from opstrobe.recording.session_config import SessionConfig

        config = self._config = SessionConfig(
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            max_bytes=max_bytes,
            spill=spill,
        )
        self.activities, self.activity_configs = parse_activities(activities, supported_activities())
        if config.experimental["trace_only"] and config.with_stack:
            warn("trace_only is switched off: with_stack needs the events that it leaves out")
            self.experimental_config = without_trace_only(config.experimental_config)
        check_experimental(config.experimental, with_cpu=ProfilerActivity.CPU in self.activities)
        self.execution_trace_observer = execution_trace_observer
        self.use_device = self._first_device()
        self.profiler: _Window | None = None
        self._warned: set[str] = set()
        self.has_cudagraphs = False
        self.mem_tl: MemoryProfileTimeline | None = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._describes_itself = True  # its trace has metadata about the environment and the machine
        self._clock = host_info.StepClock()

    def _first_device(self) -> str | None:
        return next((name or private_device() for device, name in _DEVICES.items() if device in self.activities), None)

    @property
    def activity_filters(self) -> dict[ProfilerActivity, set[str]]:
        """The kinds to record, for activities that were given with groups of kinds."""
        return filters_of(self.activity_configs)

    # --- recording ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts recording. Raises RuntimeError if this profile or another one is already recording."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Ends the recording. A second call does nothing."""
        self.stop_trace()
        self._remove_spill()

    def _remove_spill(self) -> None:
        if self.profiler is not None:
            self.profiler.remove_spill()

    def prepare_trace(self) -> None:
        """Prepares everything so that `start_trace` is quick. Drops the results of an earlier recording."""
        from dataclasses import replace

        if self.profiler is not None and self.profiler.running:
            raise RuntimeError("this profile is recording already")
        if not self.activities:
            raise AssertionError("No activities specified for the profiler")
        added_kinds = kinds_of_extensions(self.activity_configs, supported_activities)
        earlier = self.profiler
        self._remove_spill()
        if earlier is not None and not self.acc_events:
            _warn_of_replacement()
        config = replace(
            self._config,
            use_cpu=ProfilerActivity.CPU in self.activities,
            use_device=self.use_device,
            activity_filters=self.activity_filters,
            added_kinds=added_kinds,
            counters=sampling_of(self.activity_configs),
            record_ids=bool(self.execution_trace_observer),
        )
        earlier_trace = earlier.whole_trace if earlier is not None and self.acc_events else None
        window = _Window.of_config(config, earlier_trace, self._warned)
        window._prepare_trace()
        self.profiler = window

    def start_trace(self) -> None:
        """Starts the recording that `prepare_trace` prepared."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        if self.profiler.finished:
            self.prepare_trace()
        self._clock = host_info.StepClock()
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        try:
            self.profiler._start_trace()
        except BaseException:
            if self.execution_trace_observer:
                self.execution_trace_observer.stop()
            raise
        if self.with_stack:
            _core.thread_states_start()
        if self._config.spill is not None:
            for key, text in self._all_metadata().items():
                self.profiler.note_metadata(key, text)

    def stop_trace(self) -> None:
        """Ends the recording and makes its trace."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        if self.profiler.finished:
            return
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self.profiler.stop()
        states = _core.thread_states_stop()
        trace = self.profiler.trace
        if trace is not None and states:
            trace.set_metadata("thread_states", states)
        if trace is not None:
            for key, text in self._all_metadata().items():
                trace.set_metadata(key, text)

    def leave_recording(self) -> None:
        """Ends the recording without making its trace, and leaves its file (`spill`) to `opstrobe recover`."""
        if self.profiler is None or not self.profiler.running:
            return
        states = _core.thread_states_stop()
        self.profiler.name_threads()
        for key, text in {**self._all_metadata(), **({"thread_states": states} if states else {})}.items():
            self.profiler.note_metadata(key, text)
        self.profiler.discard()

    def snapshot(self, seconds: float | None = None) -> TraceFile:
        """Returns the trace of what was recorded so far, or in the last `seconds`, while the recording continues. Open
        events are unfinished. Raises RuntimeError if the profile has no recording file (`spill`) or is not
        recording."""
        if self.profiler is None:
            raise RuntimeError("cannot make a snapshot: this profile does not record")
        return self.profiler.snapshot(seconds)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pauses (False) or resumes (True) recording of the given activities. Does nothing while no recording runs."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # --- results -----------------------------------------------------------------------------------------------------

    def _trace_for(self, doing: str) -> _core.Trace:
        if self.profiler is None:
            raise AssertionError(f"cannot {doing}: this profile has recorded nothing")
        return self.profiler._trace_for(doing)

    def _events_for(self, doing: str) -> EventList:
        return self._recorded(doing)._events_for(doing)

    def _list_events(self, trace: _core.Trace) -> EventList:
        return self._recorded("listing events")._list_events(trace)

    def _memory_timeline(self, doing: str) -> _core.MemoryTimeline:
        from opstrobe.results.memory import MemoryProfile, MemoryProfileTimeline

        timeline = self._recorded(doing)._memory_timeline(doing)
        self.mem_tl = MemoryProfileTimeline(MemoryProfile(timeline))
        return timeline

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        use_python_export: bool = False,
        cuda_graph_annotations: Mapping[Any, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Writes the trace as Chrome JSON, or in Perfetto's own format if `path` ends in `.pftrace`; compressed if it
        ends in `.gz`; as often as wanted.

        `use_python_export` and the last three arguments, which concern kernels in graphs, are accepted for
        compatibility with torch and have no effect: there is only one exporter, and no device is recorded.
        """
        check_graph_options(cuda_graph_annotations, graph_lanes)
        self._recorded("exporting chrome trace").export(path)

    def wait_for_exports(self) -> None:
        """Returns once all files are written. It never waits, since each file is complete when `export_chrome_trace`
        returns."""

    def take_pending_cuspy_export(self) -> None:
        """Returns None: torch's collector cuspy is not used."""

    def module_summary(self) -> ModuleSummary:
        return self._recorded("summing up modules").module_summary()

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total", *, fold_wrappers: bool = False
    ) -> None:
        self._recorded("exporting stacks").export_stacks(path, metric, fold_wrappers=fold_wrappers)

    def _repr_html_(self) -> str:
        """Summary for notebooks: how much was recorded, and the operators with most time."""
        from opstrobe.notebook.markup import profile_html

        return profile_html(self)

    def _memory_profile(self) -> MemoryProfile:
        """The same in torch's form. Raises ValueError if the recording lacks data that torch requires for it."""
        from opstrobe.results.memory import MemoryProfile

        missing = [flag for flag in ("record_shapes", "profile_memory", "with_stack") if not getattr(self, flag)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        timeline = self._memory_timeline("memory profiling")
        return MemoryProfile(timeline, self._recorded("memory profiling").kineto_results)

    def _stats(self) -> _ProfilerStats | None:
        """The overhead of profiling; None before the first recording."""
        return None if self.profiler is None else self.profiler._stats

    def _recorded(self, doing: str) -> _Window:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {doing}")
        return self.profiler

    # --- metadata ----------------------------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the trace. Can be called at any time, including before the start and after the stop."""
        self._set_metadata(key, metadata.json_of_text(key, value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value to the trace. Can be called at any time. Raises ValueError if it is not valid JSON."""
        self._set_metadata(key, metadata.check_json(key, value))

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value to each trace that is started from now on."""
        self.preset_metadata[key] = metadata.check_json(key, value)

    def _set_metadata(self, key: str, text: str) -> None:
        self._metadata[key] = text
        if self.profiler is not None:
            self.profiler.note_metadata(key, text)
        if self.profiler is not None and self.profiler.trace is not None:
            self.profiler.trace.set_metadata(key, text)

    def _all_metadata(self) -> dict[str, str]:
        if not self._describes_itself:
            return {**self.preset_metadata, **self._metadata}
        with first_use:
            from opstrobe.recording import roof, source  # slow to import

        measured = roof.cached_json()
        flags = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        return {
            **{flag: "1" for flag in flags if getattr(self, flag)},
            **metadata.of_environment(),
            "machine": host_info.make_json(self._clock),
            "recording": provenance.make_json({flag: getattr(self, flag) for flag in (*flags, "max_bytes")}),
            **({"source": source.make_json()} if self.with_stack else {}),
            **({"roof": measured} if measured else {}),
            **self.preset_metadata,
            **self._metadata,
        }

    def _get_distributed_info(self) -> dict[str, Any] | None:
        return metadata.distributed_info()

    def get_trace_id(self) -> str | None:
        """The id of the last prepared trace; None if there is none."""
        return None if self.profiler is None else self.profiler.trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets the function that returns the id of the next trace."""
        self.custom_trace_id_callback = callback


# The operations between the action of one step and that of the next (None: the end): first the window is closed, then
# the handler is called, then the next window is opened. "p" prepares, "g" starts, "x" stops, "t" calls the handler.
_A = ProfilerAction
_TRANSITIONS: dict[tuple[ProfilerAction, ProfilerAction | None], str] = {
    (_A.NONE, _A.WARMUP): "p",
    (_A.NONE, _A.RECORD): "pg",
    (_A.NONE, _A.RECORD_AND_SAVE): "pg",
    (_A.WARMUP, _A.NONE): "gx",
    (_A.WARMUP, _A.RECORD): "g",
    (_A.WARMUP, _A.RECORD_AND_SAVE): "g",
    (_A.WARMUP, None): "gx",
    (_A.RECORD, _A.NONE): "x",
    (_A.RECORD, _A.WARMUP): "xp",
    (_A.RECORD, None): "xt",
    (_A.RECORD_AND_SAVE, _A.NONE): "xt",
    (_A.RECORD_AND_SAVE, _A.WARMUP): "xtp",
    (_A.RECORD_AND_SAVE, _A.RECORD): "xtpg",
    (_A.RECORD_AND_SAVE, _A.RECORD_AND_SAVE): "xtpg",
    (_A.RECORD_AND_SAVE, None): "xt",
}
PROFILER_STEP_NAME = "ProfilerStep"
_CLOCK_STEP_NS = 5_000_000  # for shorter steps, the 20 us that StepClock takes are too long
_INCORRECT = {(_A.WARMUP, _A.NONE), (_A.RECORD, _A.NONE), (_A.RECORD, _A.WARMUP)}


def _always_record(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile(_KinetoProfile):
    """Records a program. Use it as a context manager, and call `step` at the end of each iteration if a schedule is
    given.

    `on_trace_ready` is called with the profile each time the recorded steps are complete.
    """

    def __init__(
        self,
        *,
        activities: Activities | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool | StackOptions = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        max_bytes: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer
            or ExecutionTraceObserver.build_execution_trace_obs_from_env(),
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            max_bytes=max_bytes,
            spill=spill,
        )
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
            change = self.activities.add if use_cuda else self.activities.discard
            change(ProfilerActivity.CUDA)
            self.use_device = self._first_device()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)
        self.schedule = schedule or _always_record
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self._action_of(0)
        self.step_rec_fn: record_function | None = None
        self._started = False
        self._starts_by_step = self.record_steps  # until the profile is started or stopped explicitly
        self._started_by_step = False  # and has not been entered since
        self._in_transition = False
        self._marked_ns = 0  # when the last step was marked
        self._unfinished: tuple[str, str] | None = None  # remaining operations after a MemoryError

    @property
    def action_map(self) -> dict[tuple[ProfilerAction, ProfilerAction | None], list[Callable[[], Any]]]:
        """The operations between two actions (None: the end), in order."""
        calls = {"p": self.prepare_trace, "g": self.start_trace, "x": self.stop_trace, "t": self._trace_ready}
        return {key: [calls[letter] for letter in letters] for key, letters in _TRANSITIONS.items()}

    def _action_of(self, step: int) -> ProfilerAction:
        given = self.schedule(step)
        action = as_member(ProfilerAction, given)
        if action is None:
            raise ValueError(f"the schedule must return a ProfilerAction, got {given!r} for step {step}")
        if action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError("the schedule must not return DEVICE_STOPPED, which the profiler alone sets")
        return action

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
            if self.execution_trace_observer:
                self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Starts the profile, unless step() has started it. Raises RuntimeError if a profile is already recording."""
        self._refuse_in_handler("start")
        if self._started_by_step:
            self._started_by_step = False
            return
        if self._started:
            raise RuntimeError("this profile was started already")
        self._started = True
        self._starts_by_step = False
        try:
            self._transit_action(ProfilerAction.NONE, self.current_action)
        except BaseException:
            self._started = False
            raise
        self._open_step()

    def stop(self) -> None:
        """Ends the profile. A second call does nothing. If the handler calls this, the profile does nothing more. After
        a MemoryError a second call continues where the first failed: the recording is kept."""
        self._finish_late()
        if not self._started:
            if self.profiler is None and self.current_action is not ProfilerAction.NONE:
                raise AssertionError("Profiler must be initialized before stopping trace")
            return
        self._started = self._starts_by_step = self._started_by_step = False
        self._close_step()
        if not self._in_transition:
            self._transit_action(self.current_action, None)

    def step(self) -> None:
        """Marks the end of an iteration and the start of the next. With a schedule, also starts a profile that was
        never started."""
        self._refuse_in_handler("step")
        self._close_step()
        action = self._action_of(self.step_num + 1)
        self.step_num += 1
        previous, self.current_action = self.current_action, action
        if self._starts_by_step:
            self._starts_by_step, previous = False, ProfilerAction.NONE
            self._started = self._started_by_step = True
        if not self._started:
            return
        try:
            self._transit_action(previous, action)
            if os.environ.get("KINETO_USE_DAEMON"):
                KinetoStepTracker.increment_step(PROFILER_STEP_NAME)
        finally:
            self._open_step()

    def _refuse_in_handler(self, method: str) -> None:
        if self._in_transition:
            raise RuntimeError(f"{method}() cannot be called in on_trace_ready")

    def _open_step(self) -> None:
        if self.record_steps and self._started:
            if self.profiler is not None and self.profiler.running:
                self._clock.begin()
            self.step_rec_fn = record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None
            self._clock.end(self.step_num)

    def _mark_step(self, begin: int, end: int) -> None:
        """Marks a step from one tick to another, in a profile without a schedule. The next step begins now."""
        _core.add_range(f"{PROFILER_STEP_NAME}#{self.step_num}", begin, end)
        self._clock.end(self.step_num)
        now_ns = time.perf_counter_ns()
        if now_ns - self._marked_ns > _CLOCK_STEP_NS:  # the next one is probably as long
            self._clock.begin()
            if self.profiler is not None:
                self.profiler.check_spill()
        self._marked_ns = now_ns
        self.step_num += 1

    def _transit_action(self, previous: ProfilerAction, action: ProfilerAction | None) -> None:
        """Performs the operations between two actions. The next window is opened even if the handler raises."""
        key = (previous, action)
        if key in _INCORRECT:
            assert action is not None
            warn(f"Incorrect schedule: {previous.name} followed by {action.name}")
        self._finish_late()
        if self.profiler is not None:
            self.profiler.name_threads()
        self._do_all(*_TRANSITIONS.get(key, "").partition("t"))

    def _do_all(self, before: str, handler: str, after: str) -> None:
        self._in_transition = True
        try:
            self._do(before)
            if handler:
                self._trace_ready()
            self._remove_spill()
        except MemoryError:
            if "x" in before and self.profiler is not None and not self.profiler.finished:
                self._unfinished = (handler, after)
            raise
        finally:
            self._in_transition = False
            if self._started and self._unfinished is None:  # the handler may have stopped the profile
                self._do(after)

    def _finish_late(self) -> None:
        """Continues after a MemoryError, if there was one."""
        if self._unfinished is not None:
            (handler, after), self._unfinished = self._unfinished, None
            self._do_all("x", handler, after)

    def _do(self, what: str) -> None:
        for letter in what:
            if letter == "p":
                self.prepare_trace()
            elif letter == "g":
                self.start_trace()
            else:
                self.stop_trace()

    def _trace_ready(self) -> None:
        # There is no trace in a process forked from the one that records, or if the window could not be started.
        if self.on_trace_ready is not None and self.profiler is not None and self.profiler.trace is not None:
            self.on_trace_ready(self)
