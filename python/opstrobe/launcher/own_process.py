# SPDX-License-Identifier: Apache-2.0
"""Processes of the launcher that run Opstrobe's own code, and are not recorded."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def python_command(code: str, words: Sequence[str] = ()) -> list[str]:
    """A command that runs `code` with the modules that this process can import: the program may have added directories."""
    return [sys.executable, "-c", f"import sys; sys.path[:] = {[path for path in sys.path if path]!r}; {code}", *words]


def plain_environment() -> dict[str, str]:
    """The environment without the options of this recording."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OPSTROBE_")}


def pop_watcher() -> int:
    """Returns the socket of the process that reports SIGKILL (src/cli/run.c), and keeps it from the program's children; -1 if there
    is none."""
    try:
        descriptor = int(os.environ.pop("OPSTROBE_WATCHER", "-1"))
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)
    except (ValueError, OSError):
        return -1
    return descriptor
