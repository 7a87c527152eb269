# SPDX-License-Identifier: Apache-2.0
"""ExecutionTraceObserver: every operator of the program as a node of a graph, in a file of the Chakra schema."""

from __future__ import annotations

import abc
import atexit
import os
import sys
import weakref

from opstrobe import _core
from opstrobe._warn import warn
from opstrobe.recording.forks import first_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_registered: weakref.WeakSet[ExecutionTraceObserver] = weakref.WeakSet()


@atexit.register
def _finish_all() -> None:
    for observer in list(_registered):
        observer.cleanup()


class _ITraceObserver(abc.ABC):
    """The interface of an observer for a profile. Any object with these methods can be used."""

    @abc.abstractmethod
    def start(self) -> None:
        """Called when a window begins."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Called when a window ends."""

    @abc.abstractmethod
    def cleanup(self) -> None:
        """Called at the end of the profile."""


class ExecutionTraceObserver(_ITraceObserver):
    """Writes the arguments and results of every operator, for replay and for simulation.

    Pass it to a profile as `execution_trace_observer`, which starts and stops it with each recorded window; or start
    and stop it yourself, with or without a profile. Several can run at once.
    """

    def __init__(self) -> None:
        self._trace: _core.ExecutionTrace | None = None
        self._execution_trace_running = False
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""

    def __del__(self) -> None:
        self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """Returns the observer for ENABLE_PYTORCH_EXECUTION_TRACE=1, with a new temporary file; None if that is not
        set."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE") != "1":
            return None
        import tempfile

        try:
            handle, path = tempfile.mkstemp(suffix=".et.json")
            os.close(handle)
        except OSError as error:
            warn(f"no execution trace will be recorded: cannot create a temporary file: {error}")
            return None
        observer = ExecutionTraceObserver().register_callback(path)
        observer.set_extra_resource_collection(os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS") == "1")
        return observer

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Prepares recording into a file, compressed if its name ends in `.gz`. Does nothing if already registered.

        The file is written when the observer is unregistered. If the path cannot be written, warns, and `is_registered`
        stays false.
        """
        if self._trace is not None:
            return self
        self.output_file_path = os.fspath(output_file_path)
        folder = os.path.dirname(self.output_file_path) or "."
        if not os.access(folder, os.W_OK | os.X_OK) or os.path.isdir(self.output_file_path):
            warn(f"no execution trace will be recorded: '{self.output_file_path}' cannot be written")
            return self
        import torch  # noqa: F401  (what is observed)

        with first_use:
            from opstrobe.recording import bridge

            bridge.load()
        stem, _ = os.path.splitext(self.output_file_path)
        variable = "ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR"
        self._trace = _core.ExecutionTrace(
            self.output_file_path,
            integer_ranges=f"{variable}_RANGE" in os.environ,
            integer_data_of=os.environ.get(f"{variable}_DATA", ""),
            integer_data_folder=f"{stem}_resources/",
        )
        _registered.add(self)
        return self

    def unregister_callback(self) -> None:
        """Writes the file. Does nothing if no file is registered."""
        trace = self._trace
        if trace is None:
            return
        self.stop()
        self._trace = None
        _registered.discard(self)
        self._save_kernels()
        lost = trace.close()
        if lost:
            warn(f"{lost} nodes did not fit into memory and are missing from '{self.output_file_path}'")

    def start(self) -> None:
        """Starts recording. Does nothing unless registered."""
        if self._trace is not None and not self._execution_trace_running:
            self._trace.start()
            self._execution_trace_running = True
            self._record_process_groups()

    def stop(self) -> None:
        """Records nothing until the next start."""
        if self._trace is not None and self._execution_trace_running:
            self._execution_trace_running = False
            self._trace.stop()

    def cleanup(self) -> None:
        """Writes the file, like `unregister_callback`."""
        self.unregister_callback()

    @property
    def is_registered(self) -> bool:
        return self._trace is not None

    def is_running(self) -> bool:
        return self._execution_trace_running

    def get_output_file_path(self) -> str | None:
        return self.output_file_path or None

    def set_extra_resource_collection(self, val: bool) -> None:
        """Sets whether to keep the kernels generated by torch.compile, in a directory next to the file."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The directory of those kernels; None if there is none."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            self.resources_dir = self.get_resources_dir_for_et_path(self.output_file_path, can_create) or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        stem, _ = os.path.splitext(trace_path)
        folder = f"{stem}_resources"
        if create_dir and not os.path.exists(folder):
            try:
                os.mkdir(folder)
            except OSError as error:
                warn(f"no resources of the execution trace will be kept: {error}")
        return folder if os.path.exists(folder) else None

    def _save_kernels(self) -> None:
        folder = self.get_resources_dir()
        cache = sys.modules.get("torch._inductor.codecache")
        if folder is None or cache is None:
            return
        import shutil

        code = cache.PyCodeCache
        for module in code.modules if hasattr(code, "modules") else code.cache.values():  # before torch 2.5
            try:
                shutil.copy(module.__file__, folder)
            except (AttributeError, TypeError, OSError) as error:
                warn(f"a kernel of the execution trace was not kept: {error}")

    def _record_process_groups(self) -> None:
        """Records a node with the process groups, if there are any."""
        distributed: Any = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return
        import json

        import torch

        groups = distributed.distributed_c10d._world.pg_config_info
        text = json.dumps(groups, default=lambda value: value.item() if hasattr(value, "item") else str(value))
        autograd: Any = torch.autograd
        handle = autograd._record_function_with_args_enter("## process_group:init ##", text)
        autograd._record_function_with_args_exit(handle)
