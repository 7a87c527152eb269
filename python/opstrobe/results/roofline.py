# SPDX-License-Identifier: Apache-2.0
"""Operators compared with the roof of the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opstrobe import _core

_BY = ("operator", "shape", "kernel", "line", "module")
_ROWS_SHOWN = 30


def _text_of(roof: str | tuple[float, float] | Mapping[str, Any] | None) -> str | None:
    if roof is None or isinstance(roof, str):
        return roof
    if isinstance(roof, Mapping):
        return json.dumps(dict(roof))
    flops, bandwidth = roof
    return f"{float(flops)!r},{float(bandwidth)!r}"


class Roofline:
    """Operators, their FLOPs and bytes, and the shortest time for these. `print` it, or get its data with `as_dict`."""

    def __init__(self, trace: _core.Trace, by: str, roof: str | tuple[float, float] | Mapping[str, Any] | None) -> None:
        if by not in _BY:
            raise ValueError(f"invalid by {by!r} (choose from {', '.join(_BY)})")
        self._trace = trace
        self._by = _BY.index(by)
        self._roof = _text_of(roof)
        trace.roofline(self._by, self._roof, 1, True)  # raises for an invalid roof

    def __str__(self) -> str:
        return self._trace.roofline(self._by, self._roof, _ROWS_SHOWN, False)

    __repr__ = __str__

    def as_dict(self, top: int = 0) -> dict[str, Any]:
        """The roofs, sums, and the `top` rows with most time (0: all). Times are in microseconds."""
        data: dict[str, Any] = json.loads(self._trace.roofline(self._by, self._roof, top, True))
        return data
