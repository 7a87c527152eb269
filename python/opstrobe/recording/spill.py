# SPDX-License-Identifier: Apache-2.0
"""Recording files: their directories and paths, and files left behind by killed programs."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import itertools
import os
import re
import sys

from opstrobe import _core

SUFFIX = ".oprec"

_numbers = itertools.count(1)


def shared_directory() -> str:
    """The default directory of recordings for which the user chose none: private, in shared memory or else on disk."""
    return os.path.abspath(_core.black_box_directory())


def make_private(path: str) -> None:
    """Creates the directory. Raises OSError if it belongs to another user, who could then read what is recorded."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    seen = os.lstat(path)
    if seen.st_uid != os.getuid():
        raise PermissionError(
            f"the directory '{path}' belongs to another user; set OPSTROBE_BLACK_BOX_DIR to a directory of yours"
        )


def new_path(directory: str | os.PathLike[str]) -> str:
    """The path of the next recording file of this process in the directory, which is created if it does not exist."""
    folder = os.path.abspath(os.fspath(directory))
    with contextlib.suppress(OSError):  # opening the file reports the error
        os.makedirs(folder, mode=0o700, exist_ok=True)
    program = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
    name = re.sub(r"[^\w.-]", "_", program)[:60] or "python"
    return os.path.join(folder, f"{name}.{os.getpid()}.{next(_numbers)}{SUFFIX}")


def is_locked(path: str) -> bool:
    """Returns whether a process records into the file, which it then holds a lock on, or the file cannot be opened."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _is_abandoned(path: str) -> bool:
    """Returns whether no process records into the file any more. The id of one that does is in the file's name."""
    pid = path.split(".")[-3] if path.count(".") >= 3 else ""
    if pid.isdecimal() and os.path.exists(f"/proc/{pid}"):
        return False
    return not is_locked(path)


def left_behind(directory: str | os.PathLike[str]) -> list[str]:
    """The recording files in the directory whose programs were killed, by name."""
    pattern = os.path.join(glob.escape(os.path.abspath(os.fspath(directory))), "*" + SUFFIX)
    return [path for path in sorted(glob.glob(pattern)) if _is_abandoned(path)]
