# SPDX-License-Identifier: Apache-2.0
"""Builds and loads floor.cpp: RecordFunction callbacks that record nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

import torch
from library import load
from torch.utils import cpp_extension

_library = load(
    "floor.cpp",
    os.environ.get("CXX", "c++"),
    "-DNDEBUG",
    f"-DTORCH={torch.__version__}",  # another torch needs another library
    "-std=c++20",
    f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
    *(flag for path in cpp_extension.include_paths() for flag in ("-isystem", path)),
    *(f"-L{path}" for path in cpp_extension.library_paths()),
    "-ltorch_cpu",
    "-lc10",
)
_library.floor_add.restype = ctypes.c_uint64
_library.floor_add.argtypes = [ctypes.c_bool, ctypes.c_bool]
_library.floor_remove.argtypes = [ctypes.c_uint64]
_library.floor_add_tensors.restype = ctypes.c_int64
_library.floor_add_tensors.argtypes = [ctypes.c_int64]


@contextlib.contextmanager
def empty_callbacks(*, inputs: bool = False, clock: bool = False) -> Iterator[None]:
    """Empty callbacks on this thread; with `inputs` they request the operators' inputs, with `clock` each reads the clock."""
    handle = _library.floor_add(inputs, clock)
    try:
        yield
    finally:
        _library.floor_remove(handle)


def add_tensors(calls: int) -> None:
    """Adds two tensors of four floats `calls` times in C++."""
    _library.floor_add_tensors(calls)
