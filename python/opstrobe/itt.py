# SPDX-License-Identifier: Apache-2.0
"""Ranges and marks for Intel's VTune, through torch's own entry points: the interface of torch.profiler.itt."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def _itt() -> Any:
    try:
        from torch._C import _itt
    except ImportError:
        return None
    return _itt


def _call(name: str, *args: str) -> Any:
    itt = _itt()
    if itt is None:
        raise RuntimeError("ITT functions are not there: this torch was built without them")
    return getattr(itt, name)(*args)


def is_available() -> bool:
    """Returns whether this torch has ITT."""
    itt = _itt()
    return itt is not None and bool(itt.is_available())


def mark(msg: str) -> None:
    """Marks a point in time."""
    return _call("mark", msg)  # type: ignore[no-any-return]


def range_push(msg: str) -> None:
    """Opens a range inside the open ranges."""
    return _call("rangePush", msg)  # type: ignore[no-any-return]


def range_pop() -> None:
    """Closes the innermost range; does nothing if none is open."""
    return _call("rangePop")  # type: ignore[no-any-return]


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block or a function, named `msg.format(*args, **kwargs)`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
