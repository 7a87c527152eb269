# SPDX-License-Identifier: Apache-2.0
"""Measures the roof of this machine for a recording, in a process without the program's settings, threads and memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

_SECONDS_MAX = 30.0  # on a busy machine
_POLL_S = 0.1


def measure_roof(is_cancelled: Callable[[], bool]) -> str | None:
    """The roof for the number of threads and the version of torch of this process, as JSON; None if it was not measured.
    Ends soon after `is_cancelled` returns true."""
    import torch

    # The program's path, since torch may be in a directory that the program has added.
    code = f"import sys; sys.path[:] = {[path for path in sys.path if path]!r}; from opstrobe.roof import measure_for_run; "
    code += f"measure_for_run({torch.get_num_threads()})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={name: value for name, value in os.environ.items() if not name.startswith("OPSTROBE_")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches only this process
    )
    text = b""
    end = time.monotonic() + _SECONDS_MAX
    try:
        while process.poll() is None and time.monotonic() < end and not is_cancelled():
            with contextlib.suppress(subprocess.TimeoutExpired):
                text = process.communicate(timeout=_POLL_S)[0]
    finally:
        process.kill()
        process.communicate()
    try:
        found = json.loads(text)
        is_of_this = found["torch"] == str(torch.__version__)
    except (ValueError, KeyError, TypeError):
        return None
    return json.dumps(found, separators=(",", ":")) if is_of_this else None
