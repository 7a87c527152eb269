# SPDX-License-Identifier: Apache-2.0
"""A recording as torch's C++ represents it: `prof.profiler.kineto_results`, for programs that read it.

The events are types of the extension, created on access.
"""

from __future__ import annotations

import os

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.recording.window import Recording


class _ProfilerResult:
    """All events of a recording, as a list and as a tree."""

    def __init__(self, recording: Recording, trace: _core.Trace, use_device: str | None, with_flops: bool) -> None:
        self._recording, self.trace = recording, trace
        self._use_device, self._with_flops = use_device, with_flops
        self._tree: _core.EventTree | None = None

    def events(self) -> list[_core._KinetoEvent]:
        """All events and allocator reports, in order of time."""
        return self.trace.kineto_events(self._use_device, self._with_flops)

    def experimental_event_tree(self) -> list[_core._ProfilerEvent]:
        """The outermost events; the others are their children."""
        if self._tree is None:
            self._tree = _core.EventTree(self.trace, self._use_device)
        return self._tree.roots()

    def trace_start_ns(self) -> int:
        return self.trace.start_ns

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace. Can be called repeatedly."""
        self._recording.export(path)
