# SPDX-License-Identifier: Apache-2.0
"""Opstrobe: a profiler for PyTorch programs, with the interface of torch.profiler."""

from opstrobe._core import EventList as EventList
from opstrobe._core import FunctionEvent as FunctionEvent
from opstrobe._core import FunctionEventAvg as FunctionEventAvg
from opstrobe._core import Interval as Interval
from opstrobe._core import Kernel as Kernel
from opstrobe._core import __version__ as __version__
from opstrobe._core import _RecordFunctionFast as _RecordFunctionFast
from opstrobe._core import record_function
from opstrobe._enums import DeviceType, ProfilerAction, ProfilerActivity
from opstrobe._enums import RecordScope as RecordScope
from opstrobe.compat.patch import patch_torch as patch_torch
from opstrobe.profiler import (
    ExecutionTraceObserver,
    kineto_available,
    profile,
    supported_activities,
)
from opstrobe.profiler import _KinetoProfile as _KinetoProfile
from opstrobe.recording.experimental_config import _ExperimentalConfig as _ExperimentalConfig
from opstrobe.recording.handlers import tensorboard_trace_handler
from opstrobe.recording.schedule import schedule
from opstrobe.recording.stack import StackOptions as StackOptions
from opstrobe.recording.step_tracker import KinetoStepTracker as KinetoStepTracker
from opstrobe.results.trace_file import TraceFile as TraceFile
from opstrobe.results.trace_file import read as read
from opstrobe.results.trace_file import read_all as read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe._server import Server as Server
    from opstrobe._server import TraceApi as TraceApi
    from opstrobe._server import serve as serve
    from opstrobe.notebook.show import show as show
    from opstrobe.query.api import sql as sql

# The same names as torch.profiler. Names imported above `as` themselves are public for users who import them
# explicitly.
__all__ = [
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "DeviceType",
    "record_function",
    "ExecutionTraceObserver",
]


def load_ipython_extension(shell: object) -> None:
    """Called by `%load_ext opstrobe`. Defines `%opstrobe` and `%%opstrobe`."""
    from opstrobe.notebook import magics

    magics.load(shell)


def __getattr__(name: str) -> object:
    """Imports modules lazily that are slow to import or rarely used."""
    if name in ("ProfilerActivityConfig", "PerformanceMetricsConfig", "CuspyConfig"):
        from opstrobe.recording import activity_configs

        return getattr(activity_configs, name)
    if name == "black_box":
        from opstrobe.recording.black_box import black_box

        return black_box
    if name in ("Server", "TraceApi", "serve"):
        from opstrobe import _server

        return getattr(_server, name)
    if name == "show":
        from opstrobe.notebook.show import show

        return show
    if name == "sql":
        from opstrobe.query.api import sql

        return sql
    if name == "itt":
        import opstrobe.itt as itt

        return itt
    raise AttributeError(f"module 'opstrobe' has no attribute {name!r}")
