# SPDX-License-Identifier: Apache-2.0
"""Which Python calls are recorded, and how the paths of their files are shortened."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def parse_sample_ms(sample_ms: float | str) -> float:
    """Parses 20 and "20" as 20.0. Raises ValueError if it is neither 0 nor a number of milliseconds from 1 to
    60,000."""
    try:
        parsed = float(sample_ms)
    except ValueError:
        parsed = -1.0
    if not (parsed == 0 or 1 <= parsed <= 60_000):
        raise ValueError(f"sample_ms must be a number of milliseconds from 1 to 60000, or 0, not {sample_ms!r}")
    return parsed


class StackOptions:
    """Selects, as `with_stack=StackOptions(…)`, which Python calls to record; `with_stack=True` records all.

    `include` and `exclude` are paths of source files: patterns of `fnmatch` ("*/torch/*"), or without a wildcard
    prefixes of paths. Calls made by an excluded function appear under the function's caller. Calls shorter than
    `min_duration_us`, and calls nested deeper than `max_depth`, are dropped. Calls between functions of libraries
    (Python's and installed packages) that are shorter than `library_min_duration_us` are dropped if nothing else was
    recorded in them. Without `imports`, the import of a module is a single event, such as `import torch._dynamo`,
    without the calls in it.

    Without `calls`, no calls are recorded, and the options above have no effect: each operator has the functions of the
    program that were running when it was called, with their lines, and every `sample_ms` milliseconds the stacks of all
    threads are sampled from outside the interpreter (0: never), which shows where Python itself takes time.
    """

    __slots__ = (
        "include",
        "exclude",
        "min_duration_us",
        "library_min_duration_us",
        "max_depth",
        "imports",
        "calls",
        "sample_ms",
    )

    def __init__(
        self,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        min_duration_us: float = 0,
        library_min_duration_us: float = 0,
        max_depth: int = 0,
        imports: bool = True,
        calls: bool = True,
        sample_ms: float = 10,
    ) -> None:
        for name, paths in (("include", include), ("exclude", exclude)):
            if isinstance(paths, (str, bytes)):
                raise TypeError(f"{name} must be paths, not one: [{paths!r}]")
        self.include = tuple(os.fspath(path) for path in include)
        self.exclude = tuple(os.fspath(path) for path in exclude)
        if min_duration_us < 0 or library_min_duration_us < 0 or max_depth < 0:
            raise ValueError("min_duration_us, library_min_duration_us and max_depth must not be negative")
        self.min_duration_us = min_duration_us
        self.library_min_duration_us = library_min_duration_us
        self.max_depth = max_depth
        self.imports = imports
        self.calls = calls
        self.sample_ms = parse_sample_ms(sample_ms)

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self.__slots__}
        chosen = (f"{name}={value!r}" for name, value in values.items() if value != _DEFAULTS[name])
        return f"StackOptions({', '.join(chosen)})"


_DEFAULTS = {name: getattr(StackOptions(), name) for name in StackOptions.__slots__}


def path_prefixes() -> tuple[str, ...]:
    """Prefixes to remove from the paths of source files, the longest first: the directories in which modules are
    found."""
    import site

    paths = [*sys.path, *site.getsitepackages(), site.getuserbase(), site.getusersitepackages()]
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if torch:
        paths.append(os.path.dirname(os.path.dirname(torch)))
    prefixes = {os.path.join(os.path.abspath(path), "") for path in paths if path}
    return tuple(sorted(prefixes, key=len, reverse=True))


# Calls made by these files are work of the profiler itself. The package's other files call functions of the program.
_HIDDEN = (
    "autograd_profiler.py",
    "profiler.py",
    "recording/activities.py",
    "recording/bridge.py",
    "recording/configured.py",
    "recording/execution_trace.py",
    "recording/experimental_config.py",
    "recording/handlers.py",
    "recording/metadata.py",
    "recording/session_config.py",
    "recording/stats.py",
    "recording/tensors.py",
    "recording/thread_names.py",
    "recording/window.py",
    "results/results.py",
)


def stack_arguments(with_stack: bool | StackOptions, record_gc: bool) -> dict[str, Any]:
    """The arguments of `_core.Session` for these stacks."""
    if not with_stack:
        return {}
    package = os.path.dirname(os.path.dirname(__file__))
    options = with_stack if isinstance(with_stack, StackOptions) else StackOptions()
    if not options.calls:
        return {"call_stacks": True, "path_prefixes": path_prefixes()}
    return {
        "stack": True,
        "gc": record_gc,
        "path_prefixes": path_prefixes(),
        "include": options.include,
        "exclude": (*options.exclude, os.path.join(package, "")),
        "hide": tuple(os.path.join(package, name) for name in _HIDDEN),
        "min_duration_ns": round(options.min_duration_us * 1000),
        "library_min_duration_ns": round(options.library_min_duration_us * 1000),
        "max_depth": options.max_depth,
        "fold_imports": not options.imports,
    }
