# SPDX-License-Identifier: Apache-2.0
"""`threading.Thread.start` while a session records: it tells the new thread's name. A file of its own, for what it calls is
the program's and is to be in its stacks, while `thread_names` is hidden with all that it calls."""

from __future__ import annotations

import threading

from opstrobe.recording import thread_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_theirs: Callable[..., Any] | None = None  # as it was, while ours stands in its place


def watch() -> None:
    global _theirs
    if _theirs is None:
        _theirs = threading.Thread.start
        threading.Thread.start = _make_start(_theirs)  # type: ignore[method-assign]


def end() -> None:
    """Puts theirs back, except where somebody has put something around ours."""
    global _theirs
    if _theirs is not None and getattr(threading.Thread.start, "theirs", None) is _theirs:
        threading.Thread.start = _theirs  # type: ignore[method-assign, assignment]
    _theirs = None


def _make_start(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: threading.Thread) -> None:
        theirs(self)
        if _theirs is theirs:
            thread_names.tell_of(self)

    start.theirs = theirs  # type: ignore[attr-defined]
    return start
