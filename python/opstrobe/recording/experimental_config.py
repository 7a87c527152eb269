# SPDX-License-Identifier: Apache-2.0
"""The experimental configuration: torch's fields, and the effect of each."""

from __future__ import annotations

import os

from opstrobe._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Fields and their defaults, in the order of the positional arguments.
_FIELDS: dict[str, Any] = {
    "profiler_metrics": [],
    "profiler_measure_per_kernel": False,
    "verbose": False,
    "performance_events": [],
    "enable_cuda_sync_events": False,
    "adjust_profiler_step": False,
    "disable_external_correlation": False,
    "profile_all_threads": False,
    "capture_overload_names": False,
    "record_python_gc_info": False,
    "expose_kineto_event_metadata": False,
    "custom_profiler_config": "",
    "adjust_timestamps": False,
    "trace_only": False,
}
# Leading arguments that torch 2.15 removed: its first positional argument is `verbose`.
_REMOVED = ("profiler_metrics", "profiler_measure_per_kernel")


class _ExperimentalConfig:
    """Settings that torch considers experimental. The manual describes the effect of each here."""

    profiler_metrics: list[str]
    profiler_measure_per_kernel: bool
    verbose: bool
    performance_events: list[str]
    enable_cuda_sync_events: bool
    adjust_profiler_step: bool
    disable_external_correlation: bool
    profile_all_threads: bool
    capture_overload_names: bool
    record_python_gc_info: bool
    expose_kineto_event_metadata: bool
    custom_profiler_config: str
    adjust_timestamps: bool
    trace_only: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(_FIELDS)
        if args and isinstance(args[0], bool):  # positional as in torch 2.15
            names = names[len(_REMOVED) :]
        if len(args) > len(names):
            raise TypeError(f"_ExperimentalConfig takes at most {len(names)} arguments, got {len(args)}")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in _FIELDS:
                raise TypeError(f"_ExperimentalConfig got an unexpected keyword argument '{name}'")
            if name in given:
                raise TypeError(f"_ExperimentalConfig got multiple values for argument '{name}'")
            given[name] = value
        for name, default in _FIELDS.items():
            value = given.get(name, default)
            setattr(self, name, list(value) if isinstance(default, list) else type(default)(value))


def _state_of(config: Any) -> tuple[Any, ...]:
    state: tuple[Any, ...] = config.__reduce_ex__(2)[2]
    return state


def _values_of_torch(config: Any) -> dict[str, Any]:
    """The fields of a configuration made by torch, most of which are only visible in its pickled state.

    Where in that state a field stands differs between versions of torch, and is found by setting one at a time.
    """
    kind, state, values = type(config), _state_of(config), {}
    untouched = _state_of(kind())
    for name, default in _FIELDS.items():
        other: Any = ["x"] if isinstance(default, list) else "x" if isinstance(default, str) else True
        try:
            probe = _state_of(kind(**{name: other}))
        except TypeError:  # this version of torch does not have the field
            continue
        for i, value in enumerate(probe):
            if value != untouched[i]:
                values[name] = state[i]
                if isinstance(default, list):  # a list of bytes, since torch pickles its strings like this
                    values[name] = [os.fsdecode(text) for text in state[i]]
    return values


def values_of(config: Any) -> dict[str, Any]:
    """All fields of an experimental configuration, ours or torch's; the defaults for None."""
    if config is None:
        return dict(_FIELDS)
    if isinstance(config, _ExperimentalConfig):
        return {name: getattr(config, name) for name in _FIELDS}
    if type(config).__name__ == "_ExperimentalConfig":
        return {**_FIELDS, **_values_of_torch(config)}
    raise AttributeError(f"experimental_config must be an _ExperimentalConfig, not {type(config).__name__}")


def without_trace_only(config: Any) -> Any:
    """A copy for creating events."""
    return _ExperimentalConfig(**{**values_of(config), "trace_only": False})


def check_experimental(values: dict[str, Any], *, with_cpu: bool) -> None:
    """Warns of what has no effect here.

    Without a device there is nothing that enable_cuda_sync_events, disable_external_correlation and adjust_timestamps
    could change: these three are taken as they are.
    """
    for name in _REMOVED:
        if values[name]:
            warn(f"_ExperimentalConfig: {name} has no effect: it measures kernels, and no device is recorded")
    if values["adjust_profiler_step"]:
        warn(
            "_ExperimentalConfig: adjust_profiler_step is deprecated and has no effect: ranges nest in Python functions",
            FutureWarning,
        )
    if values["custom_profiler_config"]:
        _check_custom_config(values["custom_profiler_config"], with_cpu)


def _check_custom_config(text: str, with_cpu: bool) -> None:
    import json

    try:
        given = json.loads(text)
    except ValueError:
        given = None
    options: dict[str, Any] = given if isinstance(given, dict) else {}
    backend = options.get("backend")
    if backend in ("cuspy", "cupti_monitor"):
        if not with_cpu:
            raise ValueError(f"custom_profiler_config: the {backend} backend requires ProfilerActivity.CPU")
        raise RuntimeError(
            f"custom_profiler_config: the {backend} backend requires an NVIDIA device, but none was found"
        )
    if options.get("cuspy_async_export"):
        raise ValueError("custom_profiler_config: cuspy_async_export needs the cuspy backend")
    warn("custom_profiler_config has no effect: it is for plugins of Kineto, and there are none here")
