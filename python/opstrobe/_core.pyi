# SPDX-License-Identifier: Apache-2.0
# The C extension, as type checkers see it.

import os
from collections.abc import Callable, Container, Iterable, MutableSequence
from types import ModuleType, TracebackType
from typing import Any, NamedTuple, TypeAlias, TypeVar, final, overload

from opstrobe._enums import DeviceType

_F = TypeVar("_F", bound=Callable[..., Any])
_Event: TypeAlias = "FunctionEvent | FunctionEventAvg"

@final
class Session:
    displaced: bool
    running: bool
    @property
    def refused_events(self) -> tuple[list[str], str] | None: ...
    def __init__(
        self,
        *,
        record_shapes: bool = False,
        profile_memory: bool = False,
        all_threads: bool = False,
        capture_overload_names: bool = False,
        modules: bool = False,
        record_ids: bool = False,
        max_bytes: int = 0,
        prefault_bytes: int = 0,
        stack: bool = False,
        gc: bool = False,
        path_prefixes: tuple[str, ...] = (),
        include: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
        hide: tuple[str, ...] = (),
        max_depth: int = 0,
        min_duration_ns: int = 0,
        performance_events: tuple[str, ...] = (),
        script_modules: bool = False,
    ) -> None: ...
    def start(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> Trace: ...

@final
class ExecutionTrace:
    def __init__(self, path: str | os.PathLike[str]) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> int: ...

@final
class Trace:
    @property
    def start_ns(self) -> int: ...
    @property
    def stop_ns(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def has_memory(self) -> bool: ...
    @property
    def event_count(self) -> int: ...
    def set_metadata(self, key: str, json_text: str, /) -> None: ...
    @staticmethod
    def check_metadata(key: str, json_text: str, /) -> None: ...
    def metadata(self) -> dict[str, str]: ...
    def function_events(
        self,
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        timeout_s: float | None = None,
    ) -> EventList: ...
    def without(self, categories: Container[str], /) -> Trace: ...
    def roots(self) -> EventList: ...
    def followed_by(self, other: Trace, /) -> Trace: ...
    def export_chrome_trace(self, path: str, *, compression_level: int = 4, call_stacks: bool = False) -> None: ...
    def export_pftrace(self, path: str, *, compression_level: int = 4) -> None: ...
    def check(self) -> None: ...
    def rows(self) -> list[tuple[int, str, str, int, int]]: ...
    def notes(self) -> list[tuple[str, int, int]]: ...
    def views_json(self) -> str: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def columns(self) -> dict[str, tuple[str, bytes, bytes | None, list[str] | None]]: ...
    def advice_json(self) -> str: ...
    def diff_json(self, other: Trace, /) -> str: ...

@final
class ModuleSummary:
    def __new__(cls, trace: Trace) -> ModuleSummary: ...
    def table(self, depth: int | None = None, sort_by: str | None = None, by_class: bool = False) -> str: ...
    def rows(self, by_class: bool = False) -> list[dict[str, Any]]: ...
    def tree(self) -> list[dict[str, Any]]: ...

def read_trace(path: str | os.PathLike[str], *, progress: Callable[[int, int], object] | None = None) -> Trace: ...

class record_function:
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> str | None: ...
    @property
    def run_callbacks_on_exit(self) -> bool: ...
    @property
    def record(self) -> record_function | None: ...
    def __init__(self, name: str, args: str | None = None) -> None: ...
    def __enter__(self) -> record_function: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __call__(self, func: _F) -> _F: ...
    def _recreate_cm(self) -> record_function: ...
    def _call_end_callbacks_on_future(self, future: Any, /) -> Any: ...

@final
class _RecordFunctionFast:
    def __init__(
        self,
        name: str,
        input_values: list[Any] | tuple[Any, ...] | None = None,
        keyword_values: dict[str, Any] | None = None,
    ) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class Interval:
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    def __new__(cls, start: float, end: float) -> Interval: ...
    def elapsed_us(self) -> float: ...

class Kernel(NamedTuple):
    name: str
    device: int
    duration: float

class _Average:
    """What an event and an average of events have in common. Times in us, memory in bytes."""

    key: str
    node_id: int
    count: int
    use_device: str | None
    device_type: DeviceType
    scope: int
    is_async: bool
    is_remote: bool
    is_legacy: bool
    is_user_annotation: bool
    overload_name: str
    input_shapes: Any
    stack: list[str]
    flops: int | None
    cpu_time: float
    cpu_time_total: float
    self_cpu_time_total: float
    device_time: float
    device_time_total: float
    self_device_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    cpu_time_str: str
    cpu_time_total_str: str
    self_cpu_time_total_str: str
    device_time_str: str
    device_time_total_str: str
    self_device_time_total_str: str
    cpu_children: list[FunctionEvent]
    cpu_parent: FunctionEvent | None
    # Names of other ages.
    cuda_time: float
    cuda_time_total: float
    self_cuda_time_total: float
    self_cuda_time: float
    cuda_memory_usage: int
    self_cuda_memory_usage: int
    self_cpu_time: float
    parent: FunctionEvent | None
    children: list[FunctionEvent]

@final
class FunctionEvent(_Average):
    id: int
    name: str
    trace_name: str | None
    time_range: Interval
    thread: int
    fwd_thread: int
    sequence_nr: int
    device_index: int
    device_resource_id: int
    activity_type: str
    is_python_function: bool
    structured_input_shapes: list[Any]
    structured_input_strides: list[Any]
    input_dtypes: list[str]
    concrete_inputs: list[Any]
    kwinputs: dict[str, Any]
    performance_counters: dict[str, int]
    external_id: int
    linked_correlation_id: int
    kernels: list[Kernel]
    event_metadata: Any
    flow_id: int
    flow_type: int
    flow_start: bool
    python_id: int
    python_parent_id: int
    python_module_id: int
    self_cpu_percent: Any
    total_cpu_percent: Any
    total_device_percent: Any
    start: float
    end: float
    metadata: dict[str, int] | None
    metadata_json: str

@final
class FunctionEventAvg(_Average):
    def add(self, other: _Event) -> FunctionEventAvg: ...
    def __iadd__(self, other: _Event, /) -> FunctionEventAvg: ...

@final
class EventList(MutableSequence[Any]):
    def __new__(
        cls,
        iterable: Iterable[_Event] = (),
        /,
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> EventList: ...
    use_device: str | None
    profile_memory: bool
    with_flops: bool
    timed_out: bool
    @property
    def self_cpu_time_total(self) -> float: ...
    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList: ...
    def total_average(self) -> FunctionEventAvg: ...
    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str: ...
    def export_chrome_trace(self, path: str) -> None: ...
    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None: ...
    def supported_export_stacks_metrics(self) -> list[str]: ...
    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None: ...
    def _without_python_functions(self) -> EventList: ...
    def copy(self) -> EventList: ...
    def insert(self, index: int, value: Any) -> None: ...
    @overload
    def __getitem__(self, index: int, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> EventList: ...
    @overload
    def __setitem__(self, index: int, value: Any, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Any], /) -> None: ...
    def __delitem__(self, index: int | slice, /) -> None: ...
    def __len__(self) -> int: ...

def clock() -> str: ...
def load_bridge(path: str, /) -> None: ...
def bridge_info() -> dict[str, Any] | None: ...
def thread_name(tid: int, name: str, /) -> None: ...

@final
class MemoryTimeline:
    missing: list[str]
    def __init__(self, trace: Trace) -> None: ...
    def export(self, path: str | os.PathLike[str], format: str, device_type: int, device_index: int, /) -> None: ...
    def peak(self, device_type: int, device_index: int, top: int, as_json: bool, /) -> str: ...
    def steps(self, actions: tuple[Any, ...], make_key: Callable[[int, int, int, int], Any], /) -> tuple[Any, ...]: ...

def find_objects(*types: type) -> list[Any]: ...
def called_modules() -> list[Any]: ...

@final
class TensorWatch:
    def __init__(self, torch: ModuleType, /) -> None: ...
    def hold(self, name: str, tensor: Any, role: int, /) -> None: ...
    def hold_optimizer(self, optimizer: Any, /) -> None: ...
    def optimizers(self) -> list[Any]: ...
    def tell(self) -> None: ...
    def mark(self, all_named: bool, /) -> None: ...
    def stepped(self, optimizer: Any, args: Any, kwargs: Any, /) -> None: ...
