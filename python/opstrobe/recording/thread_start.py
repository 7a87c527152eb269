# SPDX-License-Identifier: Apache-2.0
"""Replaces `threading.Thread.start` during a session, to record the name of each new thread.

A separate file, because it calls the program's code, which belongs in stacks; stacks hide `thread_names` and its calls.
"""

from __future__ import annotations

import threading

from opstrobe.recording import thread_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_theirs: Callable[..., Any] | None = None  # the original, while ours replaces it


def watch() -> None:
    global _theirs
    if _theirs is None:
        _theirs = threading.Thread.start
        threading.Thread.start = _make_start(_theirs)  # type: ignore[method-assign]


def end() -> None:
    """Restores the original, unless other code has wrapped ours."""
    global _theirs
    if _theirs is not None and getattr(threading.Thread.start, "theirs", None) is _theirs:
        threading.Thread.start = _theirs  # type: ignore[method-assign, assignment]
    _theirs = None


def _make_start(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: threading.Thread) -> None:
        theirs(self)
        if _theirs is theirs:
            thread_names.record_name(self)

    start.theirs = theirs  # type: ignore[attr-defined]
    return start
