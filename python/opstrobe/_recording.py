# SPDX-License-Identifier: Apache-2.0
"""One recorded window: from its preparation to its trace and the events in it."""

from __future__ import annotations

import atexit
import sys
import time
import weakref

from opstrobe import _core
from opstrobe._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe._memory import TensorWatch
    from opstrobe._stats import _ProfilerStats

# The recording under way, so that interpreter exit can end it. Weak: one that is dropped ends by itself.
_running: weakref.ref[Recording] | None = None


def _stop_at_exit() -> None:
    recording = _running() if _running else None
    if recording is not None:
        recording.discard()


atexit.register(_stop_at_exit)


def _name_threads() -> None:
    """Tells the session the names that Python gave its threads."""
    threading = sys.modules.get("threading")
    if threading is None:
        return
    for thread in threading.enumerate():
        if thread.native_id is not None:
            _core.thread_name(thread.native_id, thread.name)


class Recording:
    """Prepared when made; then `start`, `stop`, and the results. For one window only."""

    def __init__(
        self,
        *,
        trace_id: str,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_flops: bool = False,
        all_threads: bool = False,
        capture_overload_names: bool = False,
    ) -> None:
        begin = time.perf_counter_ns()
        self.trace_id = trace_id
        self.use_device: str | None = None  # device collectors will say
        self.profile_memory = profile_memory
        self.with_flops = with_flops
        self._watch: TensorWatch | None = None
        self.trace: _core.Trace | None = None
        self._events: _core.EventList | None = None
        self._duration_ns = {"prepare": 0, "enable": 0, "disable": 0, "build": 0}
        self._with_torch = sys.modules.get("torch") is not None
        if self._with_torch:
            from opstrobe import _bridge  # slow to import, and of no use without torch

            _bridge.load()
            if profile_memory:
                from opstrobe._memory import TensorWatch

                self._watch = TensorWatch()
        self._session: _core.Session | None = _core.Session(
            record_shapes=record_shapes or with_flops,
            profile_memory=profile_memory,
            all_threads=all_threads,
            capture_overload_names=capture_overload_names,
        )
        self._duration_ns["prepare"] = time.perf_counter_ns() - begin

    @property
    def finished(self) -> bool:
        return self._session is None

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
        if self._watch is not None:
            self._watch.start()
        _running = weakref.ref(self)
        _name_threads()
        self._duration_ns["enable"] = time.perf_counter_ns() - begin

    def name_threads(self) -> None:
        if self.running:
            _name_threads()

    def stop(self) -> None:
        """Ends the window. There is no trace afterwards if none was begun, or in a process forked since."""
        session, self._session = self._session, None
        if session is None or not session.running:
            return
        begin = time.perf_counter_ns()
        _name_threads()
        if self._watch is not None:
            self._watch.stop()
        self.trace = session.stop()
        self._duration_ns["disable"] = time.perf_counter_ns() - begin
        self._warn_of_gaps(self.trace)

    def discard(self) -> None:
        """Ends the window without a trace."""
        if self._watch is not None:
            self._watch.cancel()
        self._session = None

    def _warn_of_gaps(self, trace: _core.Trace) -> None:
        if trace.lost:
            warn(f"{trace.lost} records did not fit into memory and are missing from the profile")
        if not self._with_torch and sys.modules.get("torch") is not None:
            warn(
                "torch was imported while this profile recorded, so it has no operators; "
                "import torch before the profile starts"
            )

    @property
    def function_events(self) -> _core.EventList:
        """The events, made at the first call; an empty list as long as there is no trace."""
        if self.trace is None:
            return _core.EventList(
                use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
            )
        if self._events is None:
            begin = time.perf_counter_ns()
            self._events = self.trace.function_events(
                use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
            )
            self._duration_ns["build"] = time.perf_counter_ns() - begin
        return self._events

    @property
    def _stats(self) -> _ProfilerStats:
        from opstrobe._stats import _ProfilerStats

        trace = self.trace
        return _ProfilerStats(
            profiling_window_duration_sec=(trace.stop_ns - trace.start_ns) / 1e9 if trace else 0.0,
            number_of_events=trace.event_count if trace else 0,
            profiler_prepare_call_duration_us=self._duration_ns["prepare"] // 1000,
            profiler_enable_call_duration_us=self._duration_ns["enable"] // 1000,
            profiler_disable_call_duration_us=self._duration_ns["disable"] // 1000,
            function_events_build_tree_call_duration_us=self._duration_ns["build"] // 1000,
        )
