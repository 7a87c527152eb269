# SPDX-License-Identifier: Apache-2.0
"""Records the processes that the program starts with multiprocessing, such as workers of a data loader and ranks of a job,
and Python programs that it runs. Each records into a file, which outlives it and of which the process of the program makes
a trace when it ends."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import glob
import inspect
import json
import os
import shutil
import sys
import tempfile
import threading
import time

from opstrobe import _core
from opstrobe._plain import print_message
from opstrobe.compat.torch_import import call_with_torch
from opstrobe.launcher.output import rank_of_job
from opstrobe.recording import spill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import opstrobe
    from opstrobe.launcher.steps import StepWatch

_VARIABLE = "OPSTROBE_RECORD_PROCESSES"  # the options of the recordings, as JSON; processes started now are recorded
_LOCK = "recording"  # name of a file that the process of the program keeps locked while it records
_ABOUT = "started_process"  # key of the metadata that describes a process
_PROCESSES_MAX = 64  # more are not recorded
_MAX_BYTES_LEAST = 1 << 20
_SHARED_BYTES_MIN = 1 << 30
_LONG_BYTES = 1 << 28  # reading as many takes seconds
_CLOSING_S = 2.0  # time for processes to end their recordings


class StartedProcess:
    """A process of the program, and what it recorded."""

    def __init__(self, trace: _core.Trace) -> None:
        metadata = trace.metadata()
        about = json.loads(metadata[_ABOUT])
        self.trace = trace
        self.name: str = about["name"]
        self.parent_pid: int = about["parent"]
        self.rank: int | None = None
        if rank_of_job() is None:  # else it has that of the process that started it
            self.rank = json.loads(metadata.get("distributedInfo", "{}")).get("rank")
        # A loader's worker is a part of what the program does. A rank of a job is compared with the others.
        self.is_apart = not about["is_loader"] and (self.rank is not None or "steps_found_by" in metadata)


class StartedProcesses:
    """One per process that `opstrobe run` records. `what` are the options of its profile."""

    def __init__(self, what: dict[str, Any], *, garbage_collections: bool, ends_early: bool):
        self._what = what
        self._garbage_collections = garbage_collections
        self._ends_early = ends_early
        self._directory: str | None = None
        self._lock = -1
        self._pid = os.getpid()
        self.recorded = 0

    def record(self, watch: StepWatch) -> None:
        """From now on processes that are started are recorded. OSError if their files cannot be made."""
        global _watch
        _watch = watch
        base = _private_directory() if self._what["spill"] is None else os.path.abspath(self._what["spill"])
        spill.make_private(base)
        _remove_abandoned(base)
        self._directory = os.path.join(base, f"processes.{self._pid}")
        os.makedirs(self._directory, mode=0o700)
        self._lock = os.open(os.path.join(self._directory, _LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        stack = self._what["with_stack"]
        limit = min(self._what["max_bytes"] or _core.memory_limit() // 4, shutil.disk_usage(base).free)
        options = {
            **self._what,
            "with_stack": {name: getattr(stack, name) for name in stack.__slots__} if stack else None,
            "max_bytes": max(_MAX_BYTES_LEAST, limit // _PROCESSES_MAX),
            "directory": self._directory,
            "garbage_collections": self._garbage_collections,
            "ends_early": self._ends_early,
            "job": f"{os.uname().nodename}.{self._pid}.{time.time_ns() // 10**9}",
        }
        os.environ[_VARIABLE] = json.dumps(options)
        _watch_processes()

    def collect(self, say: Callable[[str], None]) -> list[StartedProcess]:
        """Ends the recordings of all processes, and returns those that recorded anything, in the order of their start. Can be called
        once. `say` prints a message for the user if that takes long."""
        os.environ.pop(_VARIABLE, None)
        if self._directory is None or os.getpid() != self._pid:
            return []
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        os.close(self._lock)
        found = []
        paths = glob.glob(os.path.join(glob.escape(self._directory), "*" + spill.SUFFIX))
        self._wait_for_ends(paths)
        if sum(map(os.path.getsize, paths)) >= _LONG_BYTES:
            say(f"reading what {len(paths)} processes recorded …")
        for path in paths:
            try:
                process = StartedProcess(_core.read_trace(path))
            except (ValueError, KeyError, OSError):  # of a process that was killed as it started
                continue
            except MemoryError:
                say("out of memory: what a process recorded is left out; --max-bytes limits it")
                continue
            self.recorded += 1
            if process.trace.event_count > 1:  # the session itself is one
                found.append(process)
        _remove(self._directory)
        return _join_workers(sorted(found, key=lambda process: process.trace.start_ns))

    def _wait_for_ends(self, paths: list[str]) -> None:
        """Waits until processes that still run have noticed that their recordings end."""
        end_s = time.monotonic() + _CLOSING_S
        while self._ends_early and time.monotonic() < end_s and any(map(spill.is_locked, paths)):
            time.sleep(0.01)


def _private_directory() -> str:
    """In shared memory if there is much of it: workers of loaders pass their tensors through it."""
    directory = spill.shared_directory()
    spill.make_private(directory)
    if shutil.disk_usage(directory).free >= _SHARED_BYTES_MIN:
        return directory
    return os.path.join(tempfile.gettempdir(), os.path.basename(directory))


def _join_workers(processes: list[StartedProcess]) -> list[StartedProcess]:
    """Adds processes to the traces of ranks that started them, and returns the others."""
    apart = {process.trace.pid: process for process in processes if process.is_apart}
    joined: dict[int, list[tuple[str, _core.Trace]]] = {}
    others = []
    for process in processes:
        if process.is_apart or process.parent_pid not in apart:
            others.append(process)
        else:
            joined.setdefault(process.parent_pid, []).append((process.name, process.trace))
    for pid, named in joined.items():
        apart[pid].trace = apart[pid].trace.with_processes(named)
    return others


def _remove(directory: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        os.rmdir(directory)


def _remove_abandoned(base: str) -> None:
    """Removes what programs left behind that were killed."""
    for directory in glob.glob(os.path.join(glob.escape(base), "processes.*")):
        if not os.path.exists(f"/proc/{directory.rpartition('.')[2]}"):
            _remove(directory)


# --- in the processes ------------------------------------------------------------------------------------------------

_watch: StepWatch | None = None  # that of the process which forked this one
_watched = False
_profile: opstrobe.profile | None = None


def join_at_import() -> None:
    """Records this process if it is one of a program that is recorded. Implements OPSTROBE_RECORD_PROCESSES, which `opstrobe run`
    sets."""
    global _watched
    if _watched:  # Python may read the line that calls this from several directories
        return
    if "--multiprocessing-fork" in sys.argv or "multiprocessing.forkserver" in " ".join(sys.orig_argv):
        _watch_processes()
        return
    _watched = True
    name = os.path.basename(sys.argv[0]) if sys.argv else "python"
    call_with_torch(lambda: _begin({"name": name, "is_loader": False, "parent": os.getppid()}))


def _watch_processes() -> None:
    """Records what multiprocessing starts from this process, forked or in a new interpreter."""
    global _watched
    if _watched:
        return
    _watched = True
    from multiprocessing.process import BaseProcess

    inner = BaseProcess._bootstrap  # type: ignore[attr-defined]

    @functools.wraps(inner)
    def bootstrap(process: Any, *args: Any, **kwargs: Any) -> Any:
        about = _describe(process)
        call_with_torch(lambda: _begin(about))
        try:
            return inner(process, *args, **kwargs)
        finally:
            _end()

    BaseProcess._bootstrap = bootstrap  # type: ignore[attr-defined]


def _describe(process: Any) -> dict[str, Any]:
    """The metadata about a process of multiprocessing."""
    target: Any = getattr(process, "_target", None)
    name = str(process.name)
    is_loader = getattr(target, "__module__", None) == "torch.utils.data._utils.worker"
    if is_loader:
        with contextlib.suppress(ValueError, TypeError, IndexError):
            at = list(inspect.signature(target).parameters).index("worker_id")
            name = str(process._args[at])
        name = f"loader worker {name}"
    return {"name": name, "is_loader": is_loader, "parent": process._parent_pid}


def _begin(about: dict[str, Any]) -> None:
    """Starts recording this process. The program must also run without it."""
    global _profile
    text = os.environ.get(_VARIABLE)
    if text is None:
        return
    try:
        options = json.loads(text)
        if len(os.listdir(options["directory"])) > _PROCESSES_MAX:
            return
        _profile = _start(options, about)
    except Exception as error:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            print_message("opstrobe", f"the process '{about['name']}' is not recorded: {error}")
        return
    atexit.register(_end)
    if options["ends_early"]:
        lock = os.path.join(options["directory"], _LOCK)
        threading.Thread(target=_end_with_program, args=(lock,), name="opstrobe", daemon=True).start()


def _start(options: dict[str, Any], about: dict[str, Any]) -> opstrobe.profile:
    import opstrobe
    from opstrobe.launcher import steps
    from opstrobe.recording.stack import StackOptions

    profile = opstrobe.profile(
        record_shapes=options["record_shapes"],
        profile_memory=options["profile_memory"] and not about["is_loader"],
        with_stack=False if options["with_stack"] is None else StackOptions(**options["with_stack"]),
        with_flops=options["with_flops"],
        with_modules=options["with_modules"],
        max_bytes=options["max_bytes"],
        spill=options["directory"],
        experimental_config=opstrobe._ExperimentalConfig(
            profile_all_threads=True, record_python_gc_info=options["garbage_collections"]
        ),
    )
    profile.add_metadata_json(_ABOUT, json.dumps(about))
    if about["is_loader"]:
        profile._describes_itself = False  # the trace of which this becomes a part does
    else:
        profile.add_metadata("job", options["job"])
        ended = functools.partial(_end_step, profile)
        if _watch is None:
            steps.StepWatch(ended, lambda _: None)
        else:
            _watch.restart(ended)
    profile.start()
    assert profile.profiler is not None
    profile.profiler.gives_way = True
    return profile


def _end_step(profile: opstrobe.profile, begin: int, end: int) -> None:
    from opstrobe.launcher import steps
    from opstrobe.recording import metadata

    if not profile.step_num:  # programs leave their process groups before they end
        for key, text in metadata.of_environment().items():
            profile.preset_metadata_json(key, text)
    steps.mark_found(profile, begin, end)


def _end() -> None:
    """Ends the recording of this process."""
    global _profile
    profile, _profile = _profile, None
    if profile is not None:
        profile.leave_recording()


def _end_with_program(lock: str) -> None:
    """Waits until the process of the program does not record any more, or is gone."""
    with contextlib.suppress(OSError), open(lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
    with contextlib.suppress(Exception):
        _end()
