# SPDX-License-Identifier: Apache-2.0
"""How a line of a library is written in notebooks and in the terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def library_line(through: Mapping[str, Any]) -> str:
    """ "lightning/pytorch/loops/loop.py:12 in run": a member of `through`, the lines of libraries that a place calls."""
    return f"{through['path']}:{through['line']} in {through['function']}"
