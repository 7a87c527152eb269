# SPDX-License-Identifier: Apache-2.0
"""The enumerations of torch.profiler, with its names and values, without torch.

A member equals the member with the same name in torch's enumeration with the same name; `as_member` accepts either.
"""

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _E = TypeVar("_E", bound=enum.Enum)


class Member(enum.Enum):
    """An enumeration that prints, hashes, compares and converts to int like one made by pybind11."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return self is other or as_member(type(self), other) is self


class ProfilerActivity(Member):
    """What to record."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """The action of the profiler during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # used internally by the profiler, never by a schedule

    def __eq__(self, other: object) -> bool:
        return self is other or as_member(ProfilerAction, other) is self

    __hash__ = enum.Enum.__hash__


class DeviceType(Member):
    """The device an event ran on: c10::DeviceType."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class RecordScope(Member):
    """The kind of code an event comes from: at::RecordScope."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class _EventType(Member):
    """The kind of an event of the raw tree."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7


def as_member(kind: type[_E], value: Any) -> _E | None:
    """Returns `value` if it is a member of `kind`, the member of the same name if it is one of torch's, else None."""
    if type(value) is kind:
        return value
    if type(value).__name__ != kind.__name__:
        return None
    return kind.__members__.get(getattr(value, "name", ""))
