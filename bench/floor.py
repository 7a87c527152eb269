# SPDX-License-Identifier: Apache-2.0
"""Builds and loads floor.cpp: RecordFunction callbacks that record nothing."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils import cpp_extension

_SOURCE = Path(__file__).with_name("floor.cpp")
_INCLUDE = Path(__file__).parents[1] / "include"


def _build() -> Path:
    key = hashlib.sha256(_SOURCE.read_bytes() + Path(__file__).read_bytes() + torch.__version__.encode()).hexdigest()[
        :16
    ]
    library = Path(tempfile.gettempdir()) / f"opstrobe-bench-{os.getuid()}" / f"floor-{key}.so"
    if not library.exists():
        library.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = library.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [os.environ.get("CXX", "c++"), "-shared", "-fPIC", "-O2", "-DNDEBUG", "-std=c++20"]
            + [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
            + [flag for path in cpp_extension.include_paths() for flag in ("-isystem", path)]
            + [f"-I{_INCLUDE}", str(_SOURCE), "-o", str(fresh)]
            + [f"-L{path}" for path in cpp_extension.library_paths()]
            + ["-ltorch_cpu", "-lc10"],
            check=True,
        )
        fresh.rename(library)
    return library


_library = ctypes.CDLL(str(_build()))
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
