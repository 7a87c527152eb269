# SPDX-License-Identifier: Apache-2.0
"""The names of Python's threads, for the recording session.

Running threads are named at the start, at each step and at the stop. A thread that starts and ends in between would be
missed, so `thread_start` names each thread that starts during a session.
"""

from __future__ import annotations

import threading

from opstrobe import _core


def record_all() -> None:
    """Passes the names of all threads to the session."""
    for thread in threading.enumerate():
        record_name(thread)


def record_name(thread: threading.Thread) -> None:
    if thread.native_id is not None:
        _core.thread_name(thread.native_id, thread.name)
