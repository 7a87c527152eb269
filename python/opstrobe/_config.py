# SPDX-License-Identifier: Apache-2.0
"""What a profile was asked to do, checked: activities and the experimental configuration."""

from __future__ import annotations

from opstrobe._enums import ProfilerActivity, as_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# Field and default, in the order of the positional arguments.
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
_SUPPORTED = frozenset({"profile_all_threads", "capture_overload_names"})


class _ExperimentalConfig:
    """Settings that torch keeps apart as experimental."""

    profile_all_threads: bool
    capture_overload_names: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = list(_FIELDS)
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
    """The fields of a configuration made by torch, which shows most of them in nothing but its pickled state.

    Where in that state a field stands differs between versions of torch, and is found by setting one at a time.
    """
    kind, state, values = type(config), _state_of(config), {}
    untouched = _state_of(kind())
    for name, default in _FIELDS.items():
        other: Any = ["x"] if isinstance(default, list) else "x" if isinstance(default, str) else True
        try:
            probe = _state_of(kind(**{name: other}))
        except TypeError:  # this torch does not know the field
            continue
        for i, value in enumerate(probe):
            if value != untouched[i]:
                values[name] = state[i]
    return values


def experimental_options(config: Any) -> dict[str, bool]:
    """The options of a session that an experimental configuration, ours or torch's, stands for."""
    if config is None:
        return {}
    if isinstance(config, _ExperimentalConfig):
        values = vars(config)
    elif type(config).__name__ == "_ExperimentalConfig":
        values = _values_of_torch(config)
    else:
        raise AttributeError(f"experimental_config must be an _ExperimentalConfig, not {type(config).__name__}")
    missing = [name for name, value in values.items() if name not in _SUPPORTED and value != _FIELDS[name]]
    if missing:
        raise NotImplementedError(f"_ExperimentalConfig: not implemented yet: {', '.join(missing)}")
    return {
        "all_threads": bool(values.get("profile_all_threads")),
        "capture_overload_names": bool(values.get("capture_overload_names")),
    }


def parse_activities(given: Iterable[Any] | None, default: set[ProfilerActivity]) -> set[ProfilerActivity]:
    """The activities asked for, as ours; `default` for None. Torch's members are taken too."""
    if given is None:
        return set(default)
    items = list(given)
    groups: list[ProfilerActivity] = []
    strangers = []
    for item in items:
        member = as_member(ProfilerActivity, item)
        if member is not None:
            groups.append(member)
        elif isinstance(item, dict):
            groups += _groups_of_filter(item)
        else:
            strangers.append(item)
    if strangers and groups:
        raise TypeError(f"Expected ProfilerActivity or dict, got {type(strangers[0])}")
    for i, group in enumerate(groups):
        if group in groups[:i]:
            raise ValueError(f"Activity {group} specified more than once")
    return set(groups)


def _groups_of_filter(item: Mapping[Any, Any]) -> list[ProfilerActivity]:
    raise NotImplementedError(f"filters by kind of activity are not implemented yet: {item!r}")
