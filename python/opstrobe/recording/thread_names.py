# SPDX-License-Identifier: Apache-2.0
"""The names that Python gave its threads, for the session that records.

Those that run are asked at the start, at each step and at the stop. One that begins and ends in between nobody would see,
so while a session records `thread_start` tells of each that starts.
"""

from __future__ import annotations

import threading

from opstrobe import _core


def tell() -> None:
    """Tells the session the names of the threads there are."""
    for thread in threading.enumerate():
        tell_of(thread)


def tell_of(thread: threading.Thread) -> None:
    if thread.native_id is not None:
        _core.thread_name(thread.native_id, thread.name)
