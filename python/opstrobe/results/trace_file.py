# SPDX-License-Identifier: Apache-2.0
"""A trace that was read from a file, with what a profile gives of its own."""

from __future__ import annotations

import json
import os

from opstrobe import _core
from opstrobe.recording.window import export_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import pandas
    import pyarrow

    from opstrobe.notebook.markup import Advice
    from opstrobe.results.memory import MemoryPeak


class TraceFile:
    """The trace of a file, as a finished profile shows it."""

    def __init__(self, path: str | os.PathLike[str], trace: _core.Trace) -> None:
        self.path = os.fspath(path)
        self.trace = trace
        self._events: _core.EventList | None = None

    def events(self) -> _core.EventList:
        """All events, as `profile.events()`."""
        if self._events is None:
            self._events = self.trace.function_events(
                use_device=self.trace.device, profile_memory=self.trace.has_memory, with_flops=True
            )
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> _core.EventList:
        """The events summed up by name, as `profile.key_averages()`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as Chrome JSON, or in Perfetto's format (.pftrace); compressed when the path ends in .gz."""
        export_trace(self.trace, path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes stacks for a flame graph, as `profile.export_stacks()`."""
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str = "cpu") -> None:
        """Writes what held memory over time, as `profile.export_memory_timeline()`."""
        from opstrobe.results.memory import export, parse_device

        export(_core.MemoryTimeline(self.trace), path, parse_device(device))

    def memory_peak(self, device: str = "cpu", top: int = 10) -> MemoryPeak:
        """What holds the memory of a device when most is held, as `profile.memory_peak()`."""
        from opstrobe.results.memory import MemoryPeak, parse_device

        return MemoryPeak(_core.MemoryTimeline(self.trace), parse_device(device), top)

    def module_summary(self) -> _core.ModuleSummary:
        """Where time, FLOPs and memory went, by module, as `profile.module_summary()`."""
        return _core.ModuleSummary(self.trace)

    def views(self) -> dict[str, Any]:
        """Steps, devices, operators, kernels, memory, modules, communication and advice, as `profile.views()`."""
        views: dict[str, Any] = json.loads(self.trace.views_json())
        return views

    def advise(self) -> Advice:
        """What to change in the program, at which line, and what that would gain, as `profile.advise()`."""
        from opstrobe.notebook.markup import Advice

        return Advice(json.loads(self.trace.advice_json()))

    def show(self, *, inline: bool | None = None, height: int = 640, block: bool | None = None) -> None:
        """Opens the viewer, as `profile.show()`."""
        from opstrobe.notebook.show import show

        show(self, inline=inline, height=height, block=block)

    def to_arrow(self) -> pyarrow.Table:
        """All events as a `pyarrow.Table`, columns of the trace as they are. Needs pyarrow; other libraries that know
        Arrow's interface (polars, duckdb, …) take this object itself."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """All events as a `pandas.DataFrame`. Needs pandas."""
        return _dataframe(self.trace)

    def __arrow_c_schema__(self) -> object:
        return self.trace.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.trace.__arrow_c_stream__(requested_schema)

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says beside its events: key to JSON text."""
        return self.trace.metadata()

    @property
    def notes(self) -> list[tuple[str, int, int]]:
        """What was not as it should be in the file: (what, how often, byte of the first)."""
        return self.trace.notes()

    @property
    def diagnostics(self) -> list[dict[str, str | int]]:
        """Why figures of this trace differ from what happened: lost records, a file that ends early, events that could
        not be read. Each has `kind`, `message`, `count`, and `byte`, where in the text it is first. Empty: nothing."""
        return self.trace.diagnostics()

    @property
    def is_complete(self) -> bool:
        """Whether no record was lost, and the file does not end early."""
        return self.trace.is_complete()

    def __repr__(self) -> str:
        return f"<opstrobe.TraceFile {self.path!r}: {self.trace.event_count} events>"


def _dataframe(trace: _core.Trace) -> pandas.DataFrame:
    import numpy
    import pandas

    columns: dict[str, Any] = {}
    for name, (kind, values, valid, texts) in trace.columns().items():
        column: Any = numpy.frombuffer(values, kind)
        missing = None
        if valid is not None:
            bits = numpy.frombuffer(valid, numpy.uint8)
            missing = ~numpy.unpackbits(bits, count=len(column), bitorder="little").astype(bool)
        if texts is not None:
            codes = column.astype(numpy.int32)
            if missing is not None:
                codes[missing] = -1
            column = pandas.Categorical.from_codes(codes, texts)
        elif missing is not None:
            column = pandas.arrays.IntegerArray(column.astype(numpy.int64), missing)
        columns[name] = column
    return pandas.DataFrame(columns)


def read(path: str | os.PathLike[str], *, progress: Callable[[int, int], object] | None = None) -> TraceFile:
    """Reads a trace file of torch.profiler or Opstrobe: Chrome JSON, plain or gzip.

    ValueError names the byte that cannot be understood, OSError why the file cannot be read. `progress` is called
    with the bytes read so far and the size of the file.
    """
    return TraceFile(path, _core.read_trace(path, progress=progress))


def read_all(paths: Iterable[str | os.PathLike[str]]) -> list[TraceFile]:
    """Reads several trace files, as many at once as there are processors."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as readers:
        return list(readers.map(read, paths))
