# SPDX-License-Identifier: Apache-2.0
"""A flame graph as boxes on a screen of characters: which boxes fit, where they are, and which are adjacent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ROOT = -1


@dataclass(frozen=True)
class Box:
    node: int
    """ROOT for the complete graph."""
    depth: int
    left: int
    width: int
    """In columns, at least 1."""


_MODULE = "nn.Module: "


def calls_modules(reply: dict[str, Any]) -> bool:
    return any(frame["name"].startswith(_MODULE) for frame in reply["names"])


def name_modules(reply: dict[str, Any], modules: list[dict[str, Any]]) -> None:
    """Replaces the names of calls of modules by their paths, except for names that several modules share."""
    paths: dict[str, set[str]] = {}
    for module in modules:
        paths.setdefault(module["name"], set()).add(module["path"])
    for frame in reply["names"]:
        name = frame["name"]
        if name.startswith(_MODULE):
            found = paths.get(name, set()) - {""}
            frame["name"] = found.pop() if len(found) == 1 else name.removeprefix(_MODULE)


@dataclass
class Flame:
    """The reply to `stacks`: frames, each after its caller."""

    reply: dict[str, Any]
    children: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node, parent in enumerate(self.reply["parent"]):
            self.children.setdefault(parent, []).append(node)
        for nodes in self.children.values():
            nodes.sort(key=self.total, reverse=True)

    def total(self, node: int) -> int:
        total: int = self.reply["total_ns"] if node == ROOT else self.reply["sum_ns"][node]
        return total

    @property
    def waits_ns(self) -> int:
        """Time in which helper threads wait, which no frame has."""
        waits: int = self.reply["waits_ns"]
        return waits

    def self_time(self, node: int) -> int:
        time: int = 0 if node == ROOT else self.reply["self_ns"][node]
        return time

    def frame(self, node: int) -> dict[str, Any]:
        """Name, file and line."""
        if node == ROOT:
            return {"name": "all", "file": None, "line": None}
        frame: dict[str, Any] = self.reply["names"][self.reply["name"][node]]
        return frame

    def parent(self, node: int) -> int:
        parent: int = ROOT if node == ROOT else self.reply["parent"][node]
        return parent

    def path(self, node: int) -> list[int]:
        """The nodes from the root to this one."""
        path = [node]
        while path[-1] != ROOT:
            path.append(self.parent(path[-1]))
        return path[::-1]

    def boxes(self, zoomed: int, width: int, depth_max: int) -> list[Box]:
        """Boxes of a node over the full width, of the nodes that contain it, and of the nodes below that are at least
        one column wide."""
        path = self.path(zoomed)[-depth_max:]
        boxes = [Box(node, depth, 0, width) for depth, node in enumerate(path)]
        waiting = [(boxes[-1], 0.0, float(width))]
        while waiting:
            box, left, room = waiting.pop()
            total = self.total(box.node)
            if box.depth + 1 >= depth_max or total <= 0:
                continue
            for child in self.children.get(box.node, ()):
                share = self.total(child) / total * room
                first, end = round(left), round(left + share)
                if end <= first:
                    break  # so are the following ones, since they are in order of size
                inner = Box(child, box.depth + 1, first, end - first)
                boxes.append(inner)
                waiting.append((inner, left, share))
                left += share
        return boxes

    def find(self, text: str) -> set[int]:
        """Nodes whose name contains a text, ignoring case."""
        wanted = text.lower()
        names = {i for i, frame in enumerate(self.reply["names"]) if wanted and wanted in frame["name"].lower()}
        return {node for node, name in enumerate(self.reply["name"]) if name in names}

    def time_of(self, nodes: set[int]) -> int:
        """Time of some nodes, counting nested ones once."""
        inside: set[int] = set()
        time = 0
        for node, parent in enumerate(self.reply["parent"]):
            if parent in inside:
                inside.add(node)
            elif node in nodes:
                inside.add(node)
                time += self.total(node)
        return time
