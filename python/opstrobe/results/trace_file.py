# SPDX-License-Identifier: Apache-2.0
"""Traces read from files."""

from __future__ import annotations

import os

from opstrobe import _core
from opstrobe.results.results import Results, export_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class TraceFile(Results):
    """The trace in a file, with the interface of a finished profile."""

    def __init__(self, path: str | os.PathLike[str], trace: _core.Trace) -> None:
        self.path = os.fspath(path)
        self.trace = trace
        self._events: _core.EventList | None = None

    def _trace_for(self, doing: str) -> _core.Trace:
        return self.trace

    def _events_for(self, doing: str) -> _core.EventList:
        if self._events is None:
            self._events = self._list_events(self.trace)
        return self._events

    def _list_events(self, trace: _core.Trace) -> _core.EventList:
        return trace.function_events(use_device=trace.device, profile_memory=trace.has_memory, with_flops=True)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as Chrome JSON, or in Perfetto's format (.pftrace); compressed if the path ends in .gz."""
        export_trace(self.trace, path)

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the file: a map from keys to JSON texts."""
        return self.trace.metadata()

    @property
    def notes(self) -> list[tuple[str, int, int]]:
        """Irregularities in the file: (kind, count, byte position of the first)."""
        return self.trace.notes()

    @property
    def diagnostics(self) -> list[dict[str, str | int]]:
        """Reasons why the figures of this trace are incomplete: lost records, a file that ends early, events that could
        not be read. Each has `kind`, `message`, `count`, and `byte`, the position of the first. Empty: none."""
        return self.trace.diagnostics()

    @property
    def is_complete(self) -> bool:
        """Returns whether no record was lost and the file does not end early."""
        return self.trace.is_complete()

    def __repr__(self) -> str:
        count = self.trace.event_count
        return f"<opstrobe.TraceFile {self.path!r}: {count:,} event{'s' * (count != 1)}>"


def read(path: str | os.PathLike[str], *, progress: Callable[[int, int], object] | None = None) -> TraceFile:
    """Reads a trace file of torch.profiler or Opstrobe: Chrome JSON, plain or gzip; a file of another format that Opstrobe
    reads; or a directory of Parquet files that Nsight Systems exported.

    Raises ValueError with the position of the first invalid byte, and OSError if the file cannot be read. `progress` is
    called with the bytes read so far and the size of the file.
    """
    if os.path.isdir(path):
        from opstrobe.compat import nsight_parquet

        if nsight_parquet.is_export(path):
            return TraceFile(path, nsight_parquet.read_export(path, progress=progress))
    return TraceFile(path, _core.read_trace(path, progress=progress))


def read_all(paths: Iterable[str | os.PathLike[str]]) -> list[TraceFile]:
    """Reads several trace files in parallel, one per processor."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(os.cpu_count()) as readers:
        return list(readers.map(read, paths))
