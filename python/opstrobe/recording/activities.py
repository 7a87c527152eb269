# SPDX-License-Identifier: Apache-2.0
"""What to record: the groups of activities, and which kinds of each."""

from __future__ import annotations

from opstrobe import _core
from opstrobe._enums import ProfilerActivity, as_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from opstrobe.recording.activity_configs import ProfilerActivityConfig

    Configs = dict[ProfilerActivity, ProfilerActivityConfig]
    Sampling = tuple[tuple[str, ...], int]  # metrics, and an interval in ns; 0: the default

_DEVICE = frozenset({"GPU_MEMCPY", "GPU_MEMSET", "CONCURRENT_KERNEL"})
_CUDA_CALLS = frozenset({"CUDA_RUNTIME", "CUDA_DRIVER"})
_XPU_CALLS = frozenset({"XPU_RUNTIME", "XPU_DRIVER"})
_PRIVATE_CALLS = frozenset({"PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"})
# The kinds that we record ourselves, all on the host.
_RECORDED = frozenset({"CPU_OP", "CPU_INSTANT_EVENT", "USER_ANNOTATION", "PYTHON_FUNCTION"})
# Kinds that Kineto does not have. The operators of nodes of CUDA graphs are recorded unless filters exclude them.
_CUDA_RARE = frozenset(
    {"GRAPH_DEPENDENCY", "GRAPH_HOST_NODE", "GRAPH_EVENT_NODE", "NVTX", "ENVIRONMENT", "MEMORY", "MEMORY_POOL"}
    | {"PM_SAMPLING"}
)
_CUDA_MORE = _CUDA_RARE | {"GRAPH_NODE"}
_CUDA_WHEN_NAMED = _CUDA_RARE | {"CUDA_SYNC"}
_CUPTI_WITH_EVENT_NODES = 130500  # CUPTI 13.5; earlier, records of events do not name the node that made them
# The default metrics of PM_SAMPLING: busy multiprocessors, and the throughput of the device's memory.
_USUAL_METRICS = (
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)
# The kinds of each group by Kineto's names. Those of XPU are not checked, since unknown ones are hardware counters.
_KINDS: dict[ProfilerActivity, frozenset[str]] = {
    ProfilerActivity.CPU: _RECORDED | _XPU_CALLS | _CUDA_CALLS | _PRIVATE_CALLS | {"EXTERNAL_CORRELATION"},
    ProfilerActivity.CUDA: _DEVICE | _CUDA_CALLS | _CUDA_MORE | {"GPU_USER_ANNOTATION", "OVERHEAD", "CUDA_SYNC"},
    ProfilerActivity.MTIA: frozenset(
        {"MTIA_CCP_EVENTS", "MTIA_RUNTIME", "MTIA_INSIGHT", "MTIA_COUNTERS", "COLLECTIVE_COMM"}
    ),
    ProfilerActivity.HPU: frozenset({"HPU_OP"}),
    ProfilerActivity.PrivateUse1: _DEVICE | _PRIVATE_CALLS | {"GPU_USER_ANNOTATION"},
}


def parse_activities(
    given: Iterable[Any] | None, default: set[ProfilerActivity]
) -> tuple[set[ProfilerActivity], Configs]:
    """Returns the requested activities and their configurations, if any. Accepts torch's members and classes, too."""
    if given is None:
        return set(default), {}
    groups: list[ProfilerActivity] = []
    configs: Configs = {}
    strangers = []
    for item in given:
        member = as_member(ProfilerActivity, item)
        if member is not None:
            groups.append(member)
        elif isinstance(item, dict):
            found = _parse_configs(item)
            groups += found
            configs.update(found)
        else:
            strangers.append(item)
    if strangers and groups:
        raise TypeError(f"Expected ProfilerActivity or dict, got {type(strangers[0])}")
    for i, group in enumerate(groups):
        if group in groups[:i]:
            raise ValueError(f"Activity {group} specified more than once")
    _check_extensions(configs, set(groups))
    return set(groups), configs


def _parse_configs(item: Mapping[Any, Any]) -> Configs:
    from opstrobe.recording.activity_configs import as_config

    found: Configs = {}
    for key, value in item.items():
        group = as_member(ProfilerActivity, key)
        if group is None:
            raise TypeError(f"Expected ProfilerActivity as key, got {type(key)}")
        found[group] = as_config(value)
    return found


def _check_extensions(configs: Configs, groups: set[ProfilerActivity]) -> None:
    """Extensions belong to CUDA; elsewhere torch ignores one and requires a driver for the other."""
    for group, config in configs.items():
        for extension in config.profiler_configs:
            kind = type(extension).__name__
            if kind not in ("PerformanceMetricsConfig", "CuspyConfig"):
                raise TypeError(f"profiler_configs takes PerformanceMetricsConfig and CuspyConfig, not {kind}")
            if group is not ProfilerActivity.CUDA:
                raise ValueError(f"{kind} belongs to ProfilerActivity.CUDA, not to {group}")
            if kind == "CuspyConfig" and ProfilerActivity.CPU not in groups:
                raise ValueError("CuspyConfig requires ProfilerActivity.CPU as well as ProfilerActivity.CUDA")
            if kind == "PerformanceMetricsConfig":
                _check_metrics(extension)


def _check_metrics(config: Any) -> None:
    names = config.metric_names
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"PerformanceMetricsConfig: metric_names must be a list of str, not {names!r}")
    if not names or "" in names:
        raise ValueError("PerformanceMetricsConfig: metric_names must name metrics")
    for option in ("sampling_interval_ms", "lookback_window_ms"):
        value = getattr(config, option)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"PerformanceMetricsConfig: {option} must be positive, not {value!r}")


def filters_of(configs: Configs) -> dict[ProfilerActivity, set[str]]:
    """The kinds requested by name, by group."""
    return {group: set(config.activity_types) for group, config in configs.items() if config.activity_types is not None}


def device_kinds(filters: Mapping[Any, Iterable[str]], with_sync: bool) -> frozenset[str]:
    """The kinds of CUDA's activity to record: those in its filter, else all except the costly or rarely useful ones."""
    for key, names in filters.items():
        if as_member(ProfilerActivity, key) is ProfilerActivity.CUDA:
            return frozenset(names)
    kinds = _KINDS[ProfilerActivity.CUDA] - _CUDA_WHEN_NAMED
    return kinds | {"CUDA_SYNC"} if with_sync else kinds


def left_out_by(filters: Mapping[Any, Iterable[str]]) -> frozenset[str]:
    """The categories that filters exclude. Raises RuntimeError for a kind that does not belong to its group."""
    left_out: frozenset[str] = frozenset()
    for key, names in filters.items():
        group = as_member(ProfilerActivity, key)
        kinds, wanted = _KINDS.get(group) if group is not None else None, frozenset(names)
        for name in sorted(wanted):
            if kinds is not None and name not in kinds:
                raise RuntimeError(
                    f"'{name}' is not an activity type of {key} (choose from {', '.join(sorted(kinds))})"
                )
        if group is ProfilerActivity.CPU:
            left_out |= frozenset(name.lower() for name in _RECORDED - wanted)
        elif group is ProfilerActivity.CUDA and "GPU_USER_ANNOTATION" not in wanted:
            left_out |= {"gpu_user_annotation"}
    return left_out


def kinds_of_extensions(configs: Configs, supported: Callable[[], set[ProfilerActivity]]) -> frozenset[str]:
    """The kinds of CUDA's activity that extensions add. Raises RuntimeError with the name of a kind that cannot be
    recorded."""
    kinds: set[str] = set()
    for config in configs.values():
        if "GRAPH_EVENT_NODE" in (config.activity_types or ()) and ProfilerActivity.CUDA in supported():
            _check_event_nodes("GRAPH_EVENT_NODE")
        for extension in config.profiler_configs:
            name = type(extension).__name__
            if ProfilerActivity.CUDA not in supported():
                raise RuntimeError(f"{name} requires an NVIDIA device, but none was found")
            if name == "PerformanceMetricsConfig":
                kinds |= {"PM_SAMPLING"}
                continue
            if extension.enable_event_node_ids:
                _check_event_nodes("CuspyConfig(enable_event_node_ids=True)")
                kinds |= {"GRAPH_EVENT_NODE"}
            kinds |= {"GRAPH_HOST_NODE"}  # cuspy always records these
            kinds |= {"GRAPH_DEPENDENCY"} if extension.enable_graph_dependencies else set()
            kinds |= {"CUDA_SYNC"} if extension.enable_cuda_sync_events else set()
            kinds |= {"ENVIRONMENT"} if extension.enable_environment_counters else set()
    return frozenset(kinds)


def _check_event_nodes(asked: str) -> None:
    if _core.cupti_version() < _CUPTI_WITH_EVENT_NODES:
        raise RuntimeError(
            f"{asked} needs CUPTI 13.5, which says which node recorded an event; there is {_core.cupti()}"
        )


def sampling_of(configs: Configs) -> Sampling:
    """The counters to sample if PM_SAMPLING is among the kinds. All samples are kept, regardless of the look-back
    window."""
    for config in configs.values():
        for extension in config.profiler_configs:
            if type(extension).__name__ == "PerformanceMetricsConfig":
                interval_ms = extension.sampling_interval_ms
                interval_ns = 0 if interval_ms is None else max(1, round(interval_ms * 1e6))
                return tuple(dict.fromkeys(extension.metric_names)), interval_ns
    return _USUAL_METRICS, 0
