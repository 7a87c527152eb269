# SPDX-License-Identifier: Apache-2.0
"""`record_function` as a decorator: called from its C type, and imported at the first use."""

from __future__ import annotations

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from opstrobe._core import record_function


def decorate(recorder: record_function, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `function` with a range around each call.

    For coroutine and generator functions, the range covers the body from its first step to its last, including other
    code that runs while it is suspended. For an asynchronous generator it covers only the call.
    """
    wrapper: Callable[..., Any]
    if inspect.iscoroutinefunction(function):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with recorder._recreate_cm():
                return await function(*args, **kwargs)

    elif inspect.isgeneratorfunction(function):

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with recorder._recreate_cm():
                return (yield from function(*args, **kwargs))

    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with recorder._recreate_cm():
                return function(*args, **kwargs)

    return functools.wraps(function)(wrapper)
