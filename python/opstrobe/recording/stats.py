# SPDX-License-Identifier: Apache-2.0
"""The overhead of profiling. A separate module because `dataclasses` is slow to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _ProfilerStats:
    profiling_window_duration_sec: float = 0.0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0
