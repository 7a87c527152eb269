# SPDX-License-Identifier: Apache-2.0
"""The memory timeline in Python: torch's names for it, its files, and its peak. All of it is computed in C."""

from __future__ import annotations

import enum
import os
import sys
from typing import NamedTuple

from opstrobe import _core
from opstrobe._enums import DeviceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Where = tuple[int, int]  # device type and index, -1: none

_DEVICE_NAMES = {member.value: name.lower() for name, member in DeviceType.__members__.items()}
_DEVICE_TYPES = {name: value for value, name in _DEVICE_NAMES.items()}


class Category(enum.Enum):
    """The purpose of memory; see docs/manual/memory.md."""

    INPUT = 1
    TEMPORARY = 2
    ACTIVATION = 3
    GRADIENT = 4
    AUTOGRAD_DETAIL = 5
    PARAMETER = 6
    OPTIMIZER_STATE = 7


class Action(enum.Enum):
    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3
    DESTROY = 4


class _Storage(NamedTuple):
    ptr: int
    allocation_id: int


class TensorKey(NamedTuple):
    """A storage over its life."""

    device: str
    id: int
    storage: _Storage


def parse_device(device: Any) -> Where:
    """Parses a device such as "cuda:0", as torch writes it. Raises RuntimeError if the kind is unknown."""
    name, colon, index = str(device).partition(":")
    if name == "privateuse1":
        name = "privateuseone"
    if name == "privateuseone":
        kind = int(DeviceType.PrivateUse1)
    elif name in _DEVICE_TYPES:
        kind = _DEVICE_TYPES[name]
    else:
        kind = -1
    if kind < 0 or (colon and not index.isdecimal()):
        raise RuntimeError(f"Invalid device string: '{device}'")
    return kind, int(index) if colon else -1


def export(timeline: _core.MemoryTimeline, path: str, where: Where) -> None:
    """Writes the timeline in the format given by the path's suffix."""
    path = os.fspath(path)
    plain = path[: -len(".gz")] if path.endswith(".gz") else path
    format = "html" if plain.endswith(".html") else "raw" if plain.endswith("raw.json") else "json"
    timeline.export(path, format, *where)


class _Categories:
    """Maps tensors and versions to categories."""

    def __init__(self, categories: dict[tuple[int, int], Any]) -> None:
        self._categories = categories

    def get(self, key: Any, version: int) -> Any:
        return self._categories.get((key.id, version))


class MemoryProfile:
    """The contents of torch's private interface of this name: every change of memory. If torch is imported, actions,
    categories and keys are torch's objects, so that they compare equal to torch's."""

    def __init__(self, timeline: _core.MemoryTimeline, results: Any = None) -> None:
        self._timeline, self._results = timeline, results
        self._names: Any = sys.modules[__name__]
        self._torch: Any = sys.modules.get("torch")
        if self._torch is not None:
            from torch.profiler import _memory_profiler

            self._names = _memory_profiler

    @property
    def timeline(self) -> tuple[tuple[int, Any, tuple[Any, int], int], ...]:
        """(time in ns, -1 for storages from before the start; action; (key, version); bytes), in order of time."""
        names = self._names

        def make_key(number: int, address: int, device_type: int, device_index: int) -> Any:
            device = _DEVICE_NAMES.get(device_type, "unknown")
            if device_index >= 0:
                device += f":{device_index}"
            place = device if self._torch is None else self._torch.device(device)
            return names.TensorKey(place, number, names._Storage(address, number))

        return self._timeline.steps((None, *names.Action), make_key)

    @property
    def _categories(self) -> _Categories:
        return _Categories(self._timeline.categories(self._names.Category))

    @property
    def _op_tree(self) -> Any:
        return self._names.OpTree(self._results)


class MemoryProfileTimeline:
    """A memory timeline to write, with torch's name and methods."""

    def __init__(self, memory_profile: MemoryProfile) -> None:
        self.timeline = memory_profile._timeline

    def export_memory_timeline(self, path: str, device_str: str) -> None:
        self.timeline.export(path, "json", *parse_device(device_str))

    def export_memory_timeline_raw(self, path: str, device_str: str) -> None:
        self.timeline.export(path, "raw", *parse_device(device_str))

    def export_memory_timeline_html(self, path: str, device_str: str) -> None:
        self.timeline.export(path, "html", *parse_device(device_str))


class MemoryPeak:
    """The time at which most memory is held, and what holds it. `print` it, or get its data with `as_dict`."""

    def __init__(self, timeline: _core.MemoryTimeline, where: Where, top: int = 10) -> None:
        self._timeline = timeline
        self._where = where
        self._top = top

    def __str__(self) -> str:
        return self._timeline.peak(*self._where, self._top, False)

    __repr__ = __str__

    def as_dict(self, top: int = 0) -> dict[str, Any]:
        """Bytes, time, categories, operators, modules, lines, allocations, and missing data; `top` limits each list."""
        import json

        data: dict[str, Any] = json.loads(self._timeline.peak(*self._where, top, True))
        return data
