# SPDX-License-Identifier: Apache-2.0
"""Keeps forks out of the first use of modules and of the bridge by a profile. A child that another thread forks in this time
would wait forever: for a module that a thread imports which the child does not have, or for the lock of the cache."""

from __future__ import annotations

import os
import threading

_WAIT_S = 30  # A fork does not wait longer, since the thread that holds the lock may wait for the one that forks.

first_use = threading.RLock()
_forking = threading.local()


def _before() -> None:
    _forking.holds = first_use.acquire(timeout=_WAIT_S)


def _after() -> None:
    if _forking.holds:
        first_use.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
