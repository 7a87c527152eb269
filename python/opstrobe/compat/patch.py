# SPDX-License-Identifier: Apache-2.0
"""Opstrobe under torch's own names, for programs that import torch.profiler."""

from __future__ import annotations

import contextlib
import sys
import threading

from opstrobe._plain import print_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType
    from typing import Any

# Where torch has the names, and which. Names that the installed torch does not have are skipped. Names that torch's own
# classes use internally are not replaced, since a program may have imported them already. Three more stay torch's:
# record_function, which torch.compile recognises by identity and our recorder observes anyway; and ProfilerActivity,
# RecordScope and _ExperimentalConfig, which torch's C++ requires and Opstrobe accepts.
_NAMES = {
    "torch.profiler": (
        "profile",
        "_KinetoProfile",
        "schedule",
        "supported_activities",
        "tensorboard_trace_handler",
        "kineto_available",
        "ProfilerAction",
        "DeviceType",
        "ExecutionTraceObserver",
        "KinetoStepTracker",
        "ProfilerActivityConfig",
        "PerformanceMetricsConfig",
        "CuspyConfig",
    ),
    "torch.profiler.profiler": ("profile", "_KinetoProfile", "schedule", "tensorboard_trace_handler"),
    "torch.autograd": ("DeviceType", "_profiler_enabled"),
    "torch.autograd.profiler": (
        "profile",
        "emit_itt",
        "emit_nvtx",
        "KinetoStepTracker",
        "EnforceUnique",
        "load_nvprof",
        "parse_nvprof_trace",
    ),
}
# Types of results, which torch's own classes also create. Only type checks are to recognise ours.
_TYPES = {
    "torch.autograd.profiler": ("EventList", "FunctionEvent"),
    "torch.autograd.profiler_util": ("EventList", "FunctionEvent", "FunctionEventAvg"),
}

# Enumerations of torch's C++, which only compare with their own members. They are made equal to ours, as ours equal
# them.
_ENUMERATIONS = {
    "torch._C._profiler": ("ProfilerActivity", "RecordScope"),
    "torch._C._autograd": ("DeviceType",),
}

_asked = False  # patch_at_import was called
_lock = threading.Lock()
_active: list[Patch] = []
_replaced: list[tuple[ModuleType | type, str, Any, Any]] = []  # module or class, name, torch's, ours


def _ours(module: str, name: str) -> Any:
    import opstrobe
    import opstrobe.autograd_profiler
    import opstrobe.profiler

    if module.startswith("torch.autograd"):
        places: tuple[ModuleType, ...] = (opstrobe.autograd_profiler, opstrobe)
    else:
        places = (opstrobe, opstrobe.profiler)
    for place in places:
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"opstrobe has no {name}")


def _both(theirs: Any, ours: type) -> type:
    """Returns torch's class, for which instances of ours also pass type checks."""

    class Both(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return theirs(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, (theirs, ours))

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, (theirs, ours))

    return Both(theirs.__name__, (theirs,), {"__module__": theirs.__module__, "__doc__": theirs.__doc__})


def _equality(theirs: Callable[[Any, Any], bool]) -> tuple[Callable[..., bool], Callable[..., bool]]:
    """`==` and `!=` for one of torch's enumerations, which compare by `theirs`, and also accept members of ours."""
    from opstrobe._enums import Member

    def equal(self: Any, other: object) -> bool:
        return other == self if isinstance(other, Member) else theirs(self, other)

    def differ(self: Any, other: object) -> bool:
        return not equal(self, other)

    return equal, differ


class _Unpatched:
    """The original torch.autograd.profiler, for torch's own torch.profiler.profile."""

    def __init__(self, module: ModuleType) -> None:
        self.__dict__.update({name: theirs for where, name, theirs, _ in _replaced if where is module})
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _put(where: ModuleType | type, name: str, ours: Any) -> None:
    _replaced.append((where, name, vars(where)[name], ours))
    setattr(where, name, ours)


def _replace() -> None:
    import importlib

    import opstrobe

    for table in (_NAMES, _TYPES):
        for module_name, names in table.items():
            module = importlib.import_module(module_name)
            for name in names:
                if name not in vars(module):
                    continue
                ours = (
                    _ours(module_name, name) if table is _NAMES else _both(vars(module)[name], getattr(opstrobe, name))
                )
                _put(module, name, ours)
    for module_name, names in _ENUMERATIONS.items():
        for name in names:
            kind = getattr(sys.modules[module_name], name)
            equal, differ = _equality(vars(kind)["__eq__"])
            _put(kind, "__eq__", equal)
            _put(kind, "__ne__", differ)
    inside = importlib.import_module("torch.profiler.profiler")
    _put(inside, "prof", _Unpatched(inside.prof))


def _restore() -> None:
    """Restores torch's names, except those that other code has replaced since."""
    while _replaced:
        where, name, theirs, ours = _replaced.pop()
        if vars(where).get(name) is ours:
            setattr(where, name, theirs)


class Patch:
    """Returned by `patch_torch`: the patch lasts until `undo`, or until the end of a `with` block."""

    def undo(self) -> None:
        """Restores torch's names if no other patch remains. A second call does nothing."""
        with _lock:
            if self in _active:
                _active.remove(self)
                if not _active:
                    _restore()

    def __enter__(self) -> Patch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<opstrobe.patch_torch(): {'in force' if self in _active else 'undone'}>"


def patch_torch() -> Patch:
    """Replaces torch.profiler and torch.autograd.profiler by Opstrobe, for all code that looks names up in these
    modules.

    Names imported earlier, as by `from torch.profiler import profile`, remain torch's and continue to work. Imports
    torch.
    """
    patch = Patch()
    with _lock:
        if not _active:
            try:
                _replace()
            except BaseException:
                _restore()
                raise
        _active.append(patch)
    return patch


def patch_at_import() -> None:
    """Patches torch as soon as the program has imported it: implements OPSTROBE_PATCH=1."""
    global _asked
    from opstrobe.compat.torch_import import call_with_torch

    if _asked:  # Python may read the line that calls this from several directories
        return
    _asked = True
    call_with_torch(_patch_for_good)


def _patch_for_good() -> None:
    """Patches torch if Opstrobe supports this version. Otherwise the program, which does not import Opstrobe, runs
    without it."""
    from opstrobe.recording import bridge

    problem = bridge.problem()
    if problem is None:
        patch_torch()
    else:
        _print_warning(f"OPSTROBE_PATCH has no effect, torch's own profiler is used: {problem.splitlines()[0]}")


def _print_warning(message: str) -> None:
    """Does not use `warnings`, which the program may have turned into errors. It may also have closed standard
    error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print_message("opstrobe", message)
