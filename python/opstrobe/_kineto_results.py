# SPDX-License-Identifier: Apache-2.0
"""What torch's C++ shows of a recording: `prof.profiler.kineto_results`, for programs that read it.

Views over the trace: an event becomes an object when it is looked at, and nothing is copied.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from opstrobe import _core
from opstrobe._enums import RecordScope, _EventType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opstrobe._recording import Recording

# Accessor → attribute of FunctionEvent.
_ACCESSORS = {
    "activity_type": "activity_type",
    "concrete_inputs": "concrete_inputs",
    "correlation_id": "id",
    "device_index": "device_index",
    "device_resource_id": "device_resource_id",
    "device_type": "device_type",
    "dtypes": "input_dtypes",
    "end_thread_id": "thread",
    "external_id": "external_id",
    "flops": "flops",
    "flow_id": "flow_id",
    "flow_start": "flow_start",
    "flow_type": "flow_type",
    "fwd_thread_id": "fwd_thread",
    "is_async": "is_async",
    "is_python_function": "is_python_function",
    "is_user_annotation": "is_user_annotation",
    "kwinputs": "kwinputs",
    "linked_correlation_id": "linked_correlation_id",
    "nbytes": "cpu_memory_usage",
    "overload_name": "overload_name",
    "python_id": "python_id",
    "python_module_id": "python_module_id",
    "python_parent_id": "python_parent_id",
    "scope": "scope",
    "sequence_nr": "sequence_nr",
    "shapes": "input_shapes",
    "stack": "stack",
    "start_thread_id": "thread",
    "structured_input_shapes": "structured_input_shapes",
    "structured_input_strides": "structured_input_strides",
}


def _name(event: _core.FunctionEvent) -> str:
    return event.name if event.trace_name is None else event.trace_name


class _Timed:
    """An event and the time it is counted from."""

    def __init__(self, event: _core.FunctionEvent, base_ns: int) -> None:
        self._event, self._base_ns = event, base_ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Timed) and (self._event.id, self._base_ns) == (other._event.id, other._base_ns)

    def __hash__(self) -> int:
        return hash((self._event.id, self._base_ns))

    def _ns(self, time_us: float) -> int:
        return self._base_ns + round(time_us * 1000)


class _KinetoEvent(_Timed):
    """An event by its accessor methods."""

    def __getattr__(self, name: str) -> Any:
        try:
            attribute = _ACCESSORS[name]
        except KeyError:
            raise AttributeError(f"'_KinetoEvent' object has no attribute {name!r}") from None
        return lambda: getattr(self._event, attribute)

    def name(self) -> str:
        return _name(self._event)

    def start_ns(self) -> int:
        return self._ns(self._event.time_range.start)

    def end_ns(self) -> int:
        return self._ns(self._event.time_range.end)

    def duration_ns(self) -> int:
        return self.end_ns() - self.start_ns()

    def is_hidden_event(self) -> bool:
        return False


class _ProfilerEvent(_Timed):
    """An event in the tree."""

    @property
    def name(self) -> str:
        return _name(self._event)

    @property
    def overload_name(self) -> str:
        return self._event.overload_name

    @property
    def id(self) -> int:
        return self._event.id

    correlation_id = id

    @property
    def start_time_ns(self) -> int:
        return self._ns(self._event.time_range.start)

    @property
    def end_time_ns(self) -> int:
        return self._ns(self._event.time_range.end)

    @property
    def duration_time_ns(self) -> int:
        return self.end_time_ns - self.start_time_ns

    @property
    def start_tid(self) -> int:
        return self._event.thread

    @property
    def parent(self) -> _ProfilerEvent | None:
        parent = self._event.cpu_parent
        return None if parent is None else _ProfilerEvent(parent, self._base_ns)

    @property
    def children(self) -> list[_ProfilerEvent]:
        return [_ProfilerEvent(event, self._base_ns) for event in self._event.cpu_children]

    @property
    def tag(self) -> _EventType:
        if not self._event.is_python_function:
            return _EventType.TorchOp
        return _EventType.PyCCall if self.name.startswith("<built-in") else _EventType.PyCall

    @property
    def extra_fields(self) -> SimpleNamespace:
        event = self._event
        if not event.is_python_function:
            return _OperatorFields(
                name=self.name,
                scope=RecordScope(event.scope),
                sequence_number=event.sequence_nr,
                allow_tf32_cublas=False,
                inputs=_inputs_of(event),
                shapes=event.structured_input_shapes,
                dtypes=event.input_dtypes,
                concrete_inputs=event.concrete_inputs,
            )
        caller = event.cpu_parent
        while caller is not None and not caller.is_python_function:
            caller = caller.cpu_parent
        return SimpleNamespace(
            callsite=_call_site(self.name),
            caller=_call_site(_name(caller)) if caller is not None else None,
            module=SimpleNamespace(cls_name=self.name[11:].rpartition("_")[0])
            if self.name.startswith("nn.Module: ")
            else None,
            optimizer=None,
        )

    @property
    def typed(self) -> tuple[_EventType, SimpleNamespace]:
        return self.tag, self.extra_fields


class _OperatorFields(SimpleNamespace):
    """What there is to know of an operator. Passes for torch's own, whose type programs ask for."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        native: Any = sys.modules.get("torch._C._profiler")
        return _OperatorFields if native is None else native._ExtraFields_TorchOp


class _TensorMetadata(NamedTuple):
    """A tensor that an operator was called with; its storage and its identity are not known here."""

    sizes: list[int]
    strides: list[int]
    dtype: Any  # of torch; None for one that this torch has not
    layout: Any
    device: Any
    impl_ptr: int | None = None
    storage_data_ptr: int | None = None
    id: int | None = None
    allocation_id: int | None = None


# What C++ calls the types that torch names otherwise.
_DTYPES = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long int": "int64",
    "int": "int32",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}


def _inputs_of(event: _core.FunctionEvent) -> list[Any]:
    """Tensors, lists of them and scalars, in order of the arguments; None for what else there is."""
    return [
        _input(*argument)
        for argument in zip(
            event.input_dtypes,
            event.structured_input_shapes,
            event.structured_input_strides,
            event.concrete_inputs,
        )
    ]


def _input(dtype: str, sizes: Any, strides: Any, value: Any) -> Any:
    if dtype in ("", "Scalar", "ScalarList"):
        return value
    torch: Any = sys.modules.get("torch")
    if dtype == "TensorList":
        return [_TensorMetadata(*each, None, None, None) for each in zip(sizes, strides)]
    kind = getattr(torch, _DTYPES.get(dtype, dtype.removeprefix("c10::").lower()), None)
    return _TensorMetadata(sizes, strides, kind, getattr(torch, "strided", None), None)


def _call_site(name: str) -> SimpleNamespace:
    """`path(line): function` in its parts."""
    place, colon, function = name.rpartition("): ")
    file, _, line = place.rpartition("(")
    if not colon or not line.isdigit():
        return SimpleNamespace(file_name="", line_number=0, function_name=name)
    return SimpleNamespace(file_name=file, line_number=int(line), function_name=function)


class _Views(Sequence):  # type: ignore[type-arg]
    """Events of a list, each made when it is looked at."""

    def __init__(self, kind: type[_Timed], events: Sequence[_core.FunctionEvent], base_ns: int) -> None:
        self._kind, self._events, self._base_ns = kind, events, base_ns

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._kind(event, self._base_ns) for event in self._events[index]]
        return self._kind(self._events[index], self._base_ns)

    def __iter__(self) -> Iterator[Any]:
        return (self._kind(event, self._base_ns) for event in self._events)


class _ProfilerResult:
    """The whole."""

    def __init__(self, recording: Recording, trace: _core.Trace) -> None:
        self._recording, self._trace = recording, trace

    def events(self) -> _Views:
        """All events, in order of time."""
        return _Views(_KinetoEvent, self._trace.function_events(), self._trace.start_ns)

    def experimental_event_tree(self) -> _Views:
        """The events that nothing encloses; the others are their children."""
        return _Views(_ProfilerEvent, self._trace.roots(), self._trace.start_ns)

    def trace_start_ns(self) -> int:
        return self._trace.start_ns

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace, as often as wanted."""
        self._recording.export(path)
