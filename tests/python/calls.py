# SPDX-License-Identifier: Apache-2.0
"""Python calls of a profile as its Chrome JSON has them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass, field


@dataclass
class Call:
    name: str
    start: float
    end: float
    thread: int
    caller: str | None  # CallFrom
    finished: bool
    category: str
    id: int | None = None
    parent_id: int | None = None
    children: list[Call] = field(default_factory=list)

    @property
    def function(self):
        """ "Class.method" of a Python function, else the whole name."""
        return self.name.rpartition("): ")[2] if "): " in self.name else self.name

    def tree(self):
        return (self.function, [child.tree() for child in self.children])


def events_of(profile):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


def rows_of(profile, categories=("python_function",)):
    """All calls, in order of their start. Those that a range begins or ends in without the other are a pair of "b" and "e"."""
    rows = []
    events = [event for event in events_of(profile) if event.get("cat") in categories]
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    for event in events:
        if event["ph"] in ("X", "b"):
            args = event["args"]
            rows.append(
                Call(
                    event["name"],
                    event["ts"],
                    ends[event["id"]] if event["ph"] == "b" else event["ts"] + event["dur"],
                    event["tid"],
                    args.get("CallFrom"),
                    args.get("finished", True),
                    event["cat"],
                    args.get("Python id"),
                    args.get("Python parent id"),
                )
            )
    return rows


def roots_of(profile):
    """The calls as trees, by their ids."""
    rows = rows_of(profile)
    by_id = {row.id: row for row in rows}
    assert len(by_id) == len(rows)
    for row in rows:
        if row.parent_id is not None:
            parent = by_id[row.parent_id]
            assert parent.thread == row.thread
            assert parent.start <= row.start and row.end <= parent.end + 0.0005
            parent.children.append(row)
    return [row for row in rows if row.parent_id is None]


def find(roots, function):
    """The first call of a function in the trees."""
    for root in roots:
        if root.function == function:
            return root
        found = find(root.children, function)
        if found is not None:
            return found
    return None


def functions(calls):
    return [call.function for call in calls]


def without_addresses(name):
    return re.sub(r" object at 0x[0-9a-f]+", "", name)
