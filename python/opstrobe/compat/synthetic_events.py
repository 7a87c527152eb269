# SPDX-License-Identifier: Apache-2.0
"""Synthetic events, which a program creates itself, are torch's own objects. Lists that contain some are handled by
torch's own list.

Our events are views of a recording. A synthetic event can be changed and attached to a tree, and is rare.
"""

from __future__ import annotations

import json
import sys

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make_event(*args: Any, **kwargs: Any) -> Any:
    """Creates torch.autograd.profiler_util.FunctionEvent(…) with its arguments."""
    try:
        from torch.autograd import profiler_util
    except ImportError as missing:
        raise TypeError("FunctionEvent can be made only where torch is installed: it makes one of torch's") from missing
    make: Any = profiler_util.FunctionEvent  # untyped
    return make(*args, **kwargs)


def is_event(thing: object) -> bool:
    """Returns whether the object is an event or an average of torch's."""
    torch = sys.modules.get("torch.autograd.profiler_util")
    if torch is None or isinstance(thing, (_core.FunctionEvent, _core.FunctionEventAvg)):
        return False
    return isinstance(thing, (torch.FunctionEvent, torch.FunctionEventAvg))


def as_ours(event: Any) -> _core.FunctionEvent:
    """Returns an event of ours with the same name. An average reads nothing else from it, except its sums."""
    name = event.key if isinstance(event.key, str) else event.name
    kind = "user_annotation" if getattr(event, "is_user_annotation", False) else "cpu_op"  # torch 2.4 has none
    row: dict[str, Any] = {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 0, "args": {}}
    events = _core.parse_trace(json.dumps([row]).encode()).function_events(use_device=event.use_device)
    found: _core.FunctionEvent = events[0]
    return found


def ask(events: _core.EventList, name: str, *args: Any, **kwargs: Any) -> Any:
    """Returns the answer of torch's list of these events. Our list adopts the changes."""
    from torch.autograd import profiler_util

    items = list(events)
    if not all(map(is_event, items)):
        raise TypeError(
            f"{name}: the list holds recorded events and such made by hand, which cannot be summed up together"
        )
    make_list: Any = profiler_util.EventList  # untyped
    theirs = make_list(
        items,
        use_device=events.use_device,
        profile_memory=events.profile_memory,
        with_flops=events.with_flops,
    )
    theirs._tree_built = True  # otherwise averages computed before the tree is built count only its events
    answer = getattr(theirs, name)
    if callable(answer):
        answer = answer(*args, **kwargs)
    if len(theirs) != len(items):
        events[:] = theirs
    if isinstance(answer, profiler_util.EventList):
        return _core.EventList(
            list(answer),
            use_device=events.use_device,
            profile_memory=events.profile_memory,
            with_flops=events.with_flops,
        )
    return answer
