# SPDX-License-Identifier: Apache-2.0
"""The interface of torch.autograd.profiler: a profile of one window, without steps, and the parts of profiles."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping

from opstrobe import _core
from opstrobe._core import EventList, FunctionEvent, Trace, record_function
from opstrobe._enums import ProfilerActivity
from opstrobe._warn import warn
from opstrobe.compat.emit import emit_itt, emit_nvtx
from opstrobe.recording.activities import parse_activities
from opstrobe.recording.configured import option
from opstrobe.recording.experimental_config import check_experimental
from opstrobe.recording.metadata import check_json
from opstrobe.recording.stack import StackOptions
from opstrobe.recording.step_tracker import KinetoStepTracker
from opstrobe.recording.window import Recording, is_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from opstrobe.compat.kineto_results import _ProfilerResult
    from opstrobe.recording.session_config import SessionConfig

__all__ = [
    "profile",
    "record_function",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "EnforceUnique",
    "parse_nvprof_trace",
    "KinetoStepTracker",
    "EventList",
    "FunctionEvent",
    "MemRecordsAcc",
]

_DEVICES = ("cuda", "xpu", "mtia", "hpu", "privateuseone")
_GRAPH_LANES = ("none", "all")


def kineto_available() -> bool:
    """Returns whether profiles can be recorded, under torch's name."""
    return True


def _profiler_enabled() -> bool:
    """Returns whether a profile is recording: one of ours, or one of torch's on this thread."""
    torch = sys.modules.get("torch")
    return is_recording() or (torch is not None and torch._C._autograd._profiler_enabled())


def __getattr__(name: str) -> object:
    if name == "_is_profiler_enabled":  # torch assigns to this name
        return is_recording()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check_graph_options(annotations: Mapping[Any, Any] | None, lanes: str) -> None:
    """Raises the errors of torch 2.15 for invalid options of CUDA graphs. The options have no other effect."""
    if lanes not in _GRAPH_LANES:
        raise ValueError(f"graph_lanes must be one of {', '.join(map(repr, _GRAPH_LANES))}, got {lanes!r}")
    if lanes == "all" and not annotations:
        raise ValueError("graph_lanes='all' needs cuda_graph_annotations")


def private_device() -> str:
    """Torch's name for the backend that this process registered for its private devices."""
    torch = sys.modules.get("torch")
    return "privateuseone" if torch is None else str(torch._C._get_privateuse1_backend_name())


def _events_of(device: str | None) -> str | None:
    """The events by which torch's own profiler would time operators on the device; None if there are none."""
    torch = sys.modules.get("torch")
    if torch is None or device not in ("cuda", private_device()):
        return None
    if device == "cuda" and not torch.cuda.is_available():
        return None
    from opstrobe.recording import bridge  # slow to import

    bridge.load()
    events = "cuda" if device == "cuda" else "privateuse1"
    return events if _core.device_events(events) else None


class profile(Recording):
    """Records what runs inside it: a context manager that can be entered once. It also holds the results."""

    use_cpu: bool = option()
    activity_filters: Mapping[Any, Iterable[str]] | None = option()

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool | StackOptions = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Mapping[Any, Iterable[str]] | None = None,
    ) -> None:
        from opstrobe.recording.session_config import SessionConfig

        if use_cuda:
            warn("`use_cuda` is deprecated, use `use_device='cuda'` instead", FutureWarning)
            use_device = "cuda"
        config = SessionConfig(
            use_cpu=use_cpu,
            use_device=use_device,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
            activity_filters=activity_filters,
        )
        self._set_up(config)
        self.enabled = enabled
        self.use_cuda = use_cuda
        if enabled:
            self._check_device(use_kineto)

    @classmethod
    def of_config(cls, config: SessionConfig, earlier: Trace | None, warned: set[str]) -> profile:
        """One window of a `torch.profiler.profile`."""
        window = cls.__new__(cls)
        window._set_up(config, earlier, warned)
        window._check_device(use_kineto=True)
        return window

    def _set_up(self, config: SessionConfig, earlier: Trace | None = None, warned: set[str] | None = None) -> None:
        super().__init__(config, earlier=earlier, warned=warned)
        self._kineto_results: _ProfilerResult | None = None
        self.enabled = True
        self.use_cuda = False
        self.entered = False

    def _check_device(self, use_kineto: bool) -> None:
        name, use_cpu = self._config.use_device, self.use_cpu
        if name == "mtia" and not use_kineto:
            raise AssertionError("Legacy MTIA profiling is not supported: it needs use_kineto=True and an MTIA device")
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self._device_events = _events_of(name)
        problem = None
        if name == "cuda":
            devices, problem = _core.cuda()
            if problem is None:
                self.use_device = "cuda"
                return
            problem = problem if devices else None
        if self._device_events is not None:
            if not use_cpu:
                raise AssertionError(f"{name} is timed by events around operators, which requires use_cpu=True")
            self.use_device, self._devices = name, frozenset()
            self._warn_of_events(problem or "no collector supports it")
            return
        if name is not None and name in (*_DEVICES, private_device()):
            word = name.upper()
            self._warn_of_devices(
                f"{word} is not available, disabling {word} profiling" + (f": {problem}" if problem else "")
            )
        elif name is not None:
            self._warn_of_devices(f"The {name} is not a valid device option.")
        if not use_cpu:
            raise AssertionError("No activities specified for the profiler")

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pauses (False) or resumes (True) recording of the given activities. Does nothing while no recording runs."""
        named = parse_activities(activities, set())[0]
        if ProfilerActivity.CPU in named:
            self.toggle(bool(enabled))
        if ProfilerActivity.CUDA in named:
            self.toggle_devices(bool(enabled))

    def default_trace_id(self) -> str:
        import uuid

        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        if self.custom_trace_id_callback is None:
            return self.default_trace_id()
        trace_id = self.custom_trace_id_callback()
        if not isinstance(trace_id, str):
            raise TypeError(f"custom_trace_id_callback must return str, not {type(trace_id).__name__}")
        return trace_id

    def _prepare_trace(self) -> None:
        self.entered = True
        timeout = self.post_processing_timeout_s
        if timeout is not None and timeout < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.prepare(self.create_trace_id())

    def _start_trace(self) -> None:
        self.start()

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        check_experimental(self._config.experimental, with_cpu=self.use_cpu)
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.enabled:
            self.stop()

    # --- results -----------------------------------------------------------------------------------------------------

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as a table."""
        return self.function_events.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, str] | None = None,
        use_python_export: bool = False,
        cuda_graph_annotations: Mapping[Any, Any] | None = None,
        graph_lanes: str = "none",
        default_stream: int = 7,
    ) -> None:
        """Writes the trace, as `opstrobe.profile.export_chrome_trace`; `metadata` has JSON texts to add."""
        check_graph_options(cuda_graph_annotations, graph_lanes)
        if self.trace is not None:
            for key, text in (metadata or {}).items():
                self.trace.set_metadata(key, check_json(key, text))
        self.export(path)

    @property
    def kineto_results(self) -> _ProfilerResult | None:
        """The recording as torch's C++ would represent it; None until there is one."""
        from opstrobe.compat.kineto_results import _ProfilerResult

        if self.trace is None:
            return None
        if self._kineto_results is None or self._kineto_results.trace is not self.trace:
            self._kineto_results = _ProfilerResult(self, self.trace, self.use_device, self.with_flops)
        return self._kineto_results

    @property
    def profiling_start_time_ns(self) -> int:
        return self.trace.start_ns if self.trace is not None else 0

    @property
    def profiling_end_time_ns(self) -> int:
        return self.trace.stop_ns if self.trace is not None else 0

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.trace is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.trace is None else str(self.function_events)


class EnforceUnique:
    """Raises RuntimeError if a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class MemRecordsAcc:
    """Memory records by time: pairs of an object with `start_ns()` and any value."""

    def __init__(self, mem_records: Iterable[Any]) -> None:
        self._mem_records = list(mem_records)
        order = sorted((record[0].start_ns(), place) for place, record in enumerate(self._mem_records))
        self._start_nses = [start_ns for start_ns, _ in order]
        self._indices = [place for _, place in order]

    def in_interval(self, start_ns: float, end_ns: float) -> Iterable[Any]:
        """The records from `start_ns` to `end_ns`, both inclusive."""
        import bisect

        first = bisect.bisect_left(self._start_nses, start_ns)
        last = bisect.bisect_right(self._start_nses, end_ns)
        for place in self._indices[first:last]:
            yield self._mem_records[place]


def parse_nvprof_trace(path: str | os.PathLike[str]) -> EventList:
    """The ranges and kernels in a file of nvprof. Raises sqlite3.OperationalError if it is missing or not a file of
    nvprof."""
    from opstrobe.compat import nvprof  # with sqlite3, slow to import

    return nvprof.parse_nvprof_trace(path)


def load_nvprof(path: str | os.PathLike[str]) -> EventList:
    """The same, under torch's other name."""
    return parse_nvprof_trace(path)
