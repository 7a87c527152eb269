# SPDX-License-Identifier: Apache-2.0
"""Measures the roof of this machine for a recording, in a process without the program's settings, threads and memory."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable

from opstrobe.launcher.own_process import plain_environment, python_command

_SECONDS_MAX = 30.0  # on a busy machine
_POLL_S = 0.1


def measure_roof(is_cancelled: Callable[[], bool]) -> str | None:
    """The roof for the number of threads and the version of torch of this process, as JSON; None if it was not measured.
    Ends soon after `is_cancelled` returns true."""
    import torch

    process = subprocess.Popen(
        python_command(f"from opstrobe.roof import measure_for_run; measure_for_run({torch.get_num_threads()})"),
        env=plain_environment(),
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
