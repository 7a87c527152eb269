# SPDX-License-Identifier: Apache-2.0
"""Compiles a source file of this directory to a shared library, which is kept for later runs."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
_INCLUDE = _HERE.parent / "include"


def load(name: str, compiler: str, *options: str) -> ctypes.CDLL:
    """Loads the library of the source file `name`, compiled with these options."""
    command = [compiler, "-shared", "-fPIC", "-O2", f"-I{_INCLUDE}", str(_HERE / name), *options]
    headers = sorted(_INCLUDE.rglob("*.h"))
    contents = b"".join(path.read_bytes() for path in [_HERE / name, *headers])
    key = hashlib.sha256(contents + " ".join(command).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"opstrobe-bench-{os.getuid()}" / f"{Path(name).stem}-{key}.so"
    if not library.exists():
        library.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = library.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, "-o", str(fresh)], check=True)
        fresh.rename(library)
    return ctypes.CDLL(str(library))
