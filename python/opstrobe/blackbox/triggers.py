# SPDX-License-Identifier: Apache-2.0
"""The triggers of incidents that Python can observe: errors, steps, garbage collections and os._exit.

The watching thread and everything else is in C (opstrobe/internal/watch.h)."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import shlex
import sys
import threading

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

PAGE_SUFFIX = ".opwatch"
TRIGGERS = ("slow_step", "hang", "exception", "oom", "signal")
_ALWAYS = ("memory", "request", "exit", "killed")
_FRAMES_MAX = 60
_MESSAGE_MAX = 2000
_NOTE_LINES = 10

_REPORTED = "_opstrobe_incident"  # an attribute of errors that have an incident
_hooks_are_set = False


def checked(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names as a tuple. Raises ValueError if one does not exist."""
    names = tuple(names)
    for name in names:
        if name not in TRIGGERS:
            raise ValueError(f"unknown trigger '{name}' (choose from {', '.join(TRIGGERS)})")
    return names


def start(
    incidents: str | None = None,
    *,
    page: str | None = None,
    recording: str | None = None,
    on: Iterable[str] = TRIGGERS,
    per_hour: float = 3,
    seconds: float = 0,
    hang_seconds: float = 0,
    slow_step_seconds: float = 0,
    rss_limit: int = 0,
    max_bytes: int = 0,
    budget: float = -1,
) -> None:
    """Watches this process until `stop` or its end. Zero means the default.

    With a `budget`, a share of a step, shadow steps measure what recording costs, and detail is left out beyond it (0:
    never). `page` is the path of the watch file, from which an incident can be made if the process is killed;
    `recording` is the recording file. ValueError for an unknown trigger; OSError if the directory of incidents is
    unknown or the watch file cannot be made.
    """
    directory = incidents or _core.incidents_directory()
    if directory is None:
        raise OSError("no directory for incidents: set OPSTROBE_INCIDENTS or HOME")
    names = checked(on)
    _core.watch_start(
        os.path.abspath(directory),
        page=page,
        recording=recording,
        process_name=os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0] or "python",
        command=shlex.join(sys.argv)[:2000],
        rank=_number("RANK", -1) if _number("WORLD_SIZE", 1) > 1 else -1,
        world_size=_number("WORLD_SIZE", 0),
        triggers=(*names, *_ALWAYS),
        per_hour=per_hour,
        window_s=seconds,
        hang_s=hang_seconds,
        min_excess_s=slow_step_seconds,
        rss_limit_bytes=rss_limit,
        max_bytes=max_bytes,
        budget=budget,
        read_native=_native_stacks(),
    )
    gc.callbacks.append(_core.watch_collection)
    _set_hooks()


def _native_stacks() -> str | None:
    """The path of the program that reads native stacks; None if it cannot run."""
    path = os.path.join(os.path.dirname(_core.__file__), "native-stacks")
    return path if os.access(path, os.X_OK) else None


def stop() -> None:
    """Stops watching."""
    with contextlib.suppress(ValueError):
        gc.callbacks.remove(_core.watch_collection)
    _core.watch_stop()


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else otherwise


# --- errors ------------------------------------------------------------------------------------------------------------


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether the error comes from an allocator: Python's, torch's for the CPU or a device's."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)[:500])
    )


def report_error(error: BaseException, traceback: TracebackType | None = None) -> None:
    """Makes an incident of an unhandled error, once. A memory error gets the first lines of the report as a note."""
    if not _core.watch_is_on() or isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return
    if getattr(error, _REPORTED, False):
        return
    with contextlib.suppress(Exception):  # an error that does not accept attributes is reported twice
        setattr(error, _REPORTED, True)
    out_of_memory = is_out_of_memory(error)
    try:
        text = json.dumps(_facts_of(error, traceback or error.__traceback__))
        directory = _core.watch_trigger("oom" if out_of_memory else "exception", f'"exception": {text}')
    except Exception:  # the program's error matters more, and memory may be exhausted
        return
    if directory is not None and out_of_memory:
        with contextlib.suppress(Exception):
            _add_note(error, directory)


def _facts_of(error: BaseException, traceback: TracebackType | None) -> dict[str, Any]:
    frames: list[dict[str, Any]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        name = getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on
        frames.append({"file": code.co_filename, "line": traceback.tb_lineno, "function": name})
        traceback = traceback.tb_next
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return {
        "type": module + kind.__qualname__,
        "message": str(error)[:_MESSAGE_MAX],
        "tid": threading.get_native_id(),
        "python": frames[-_FRAMES_MAX:][::-1],
    }


def _add_note(error: BaseException, directory: str) -> None:
    with open(os.path.join(directory, "report.json"), encoding="utf-8") as file:
        memory = json.load(file)["memory"]
    lines = [line for line in (memory or {}).get("text", "").splitlines() if line.strip()][:_NOTE_LINES]
    lines.append(f"the report: opstrobe incidents show {os.path.basename(directory)}")
    if hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note("\n".join(lines))
    else:
        print("\n".join(lines), file=sys.stderr)


# --- hooks -------------------------------------------------------------------------------------------------------------


def _set_hooks() -> None:
    """Sets the hooks, once per process. They call the previous hooks, even when nothing is watched any more."""
    global _hooks_are_set
    if _hooks_are_set:
        return
    _hooks_are_set = True
    atexit.register(stop)
    _hook_errors()
    _hook_thread_errors()
    _hook_exit()


def _hook_errors() -> None:
    inner = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        report_error(error, traceback)
        inner(kind, error, traceback)

    sys.excepthook = excepthook


def _hook_thread_errors() -> None:
    inner = threading.excepthook

    def excepthook(args: Any, /) -> None:
        if args.exc_value is not None:
            report_error(args.exc_value, args.exc_traceback)
        inner(args)

    threading.excepthook = excepthook


def _hook_exit() -> None:
    inner: Callable[[int], Any] = os._exit

    @functools.wraps(inner)
    def exit_now(status: int) -> Any:
        _core.watch_exit(status)
        inner(status)

    os._exit = exit_now
