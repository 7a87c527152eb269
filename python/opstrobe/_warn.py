# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the line of the user's program that led to them."""

from __future__ import annotations

import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def _is_ours(frame: FrameType) -> bool:
    package = frame.f_globals.get("__package__")
    return isinstance(package, str) and package.partition(".")[0] == __package__


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
