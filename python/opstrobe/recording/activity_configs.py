# SPDX-License-Identifier: Apache-2.0
"""The values of an activity in torch 2.14 and later. A separate module because `dataclasses` is slow to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ProfilerActivityConfig:
    """The kinds of a group to record (None: all, []: none), and extensions."""

    activity_types: list[str] | None = None
    profiler_configs: list[Any] = field(default_factory=list)


@dataclass
class PerformanceMetricsConfig:
    """Hardware counters of the current CUDA device to sample, by CUPTI's names: as many as fit into one pass, every
    millisecond by default. torch keeps the samples within a look-back window; here all samples are kept."""

    metric_names: list[str]
    sampling_interval_ms: float | None = None
    lookback_window_ms: float | None = None


@dataclass(frozen=True)
class CuspyConfig:
    """Recording of a CUDA device by torch's collector cuspy."""

    enable_cuda_sync_events: bool = False
    enable_environment_counters: bool = False
    enable_graph_dependencies: bool = False
    enable_event_node_ids: bool = False


def as_config(value: Any) -> ProfilerActivityConfig:
    """Converts a list of kinds, None, or a configuration (ours or torch's) to our configuration."""
    if value is None:
        return ProfilerActivityConfig()
    if type(value).__name__ == "ProfilerActivityConfig":
        return ProfilerActivityConfig(value.activity_types, list(value.profiler_configs))
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"Expected a list of activity types or a ProfilerActivityConfig, got {type(value)}")
    return ProfilerActivityConfig(list(value))
