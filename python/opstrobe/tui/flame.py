# SPDX-License-Identifier: Apache-2.0
"""The flame graph: a box for each frame that is at least a character wide, callers above their callees."""

from __future__ import annotations

import zlib

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from opstrobe._plain import printable
from opstrobe.tui.figures import cell_text, place, shorten
from opstrobe.tui.flame_model import ROOT, Box, Flame

_DEPTH_MAX = 500
_ABOVE_SHOWN = 2  # rows of callers that stay visible when a frame is zoomed to
_PALETTE = ("green", "cyan", "yellow", "bright_blue", "bright_magenta")  # black text is readable on these


class FlameGraph(Widget):
    """Draws boxes, which keys and clicks select."""

    can_focus = True

    BINDINGS = [
        Binding("enter,plus,equals_sign", "zoom_in", "Zoom in"),
        Binding("backspace,minus,u", "zoom_out", "Zoom out"),
        Binding("home", "zoom_all", "All", show=False),
        Binding("up", "go_up", show=False),
        Binding("down", "go_down", show=False),
        Binding("left", "go_aside(-1)", show=False),
        Binding("right", "go_aside(1)", show=False),
    ]

    class Selected(Message):
        """Another frame was selected."""

    def __init__(self) -> None:
        super().__init__()
        self.flame: Flame | None = None
        self.zoomed = ROOT
        self.selected = ROOT
        self.found: set[int] = set()
        self.boxes: list[Box] = []
        self._by_depth: dict[int, list[Box]] = {}
        self._first = 0

    def show(self, flame: Flame) -> None:
        self.flame = flame
        self.zoomed = self.selected = ROOT
        self.found = set()
        self._first = 0
        self._place()

    def _place(self) -> None:
        if self.flame is None or self.size.width == 0:
            return
        self.boxes = sorted(
            self.flame.boxes(self.zoomed, self.size.width, _DEPTH_MAX), key=lambda box: (box.depth, box.left)
        )
        self._by_depth = {}
        for box in self.boxes:
            self._by_depth.setdefault(box.depth, []).append(box)
        if self.box() is None:
            self.selected = self.zoomed
        self.select(self.selected)

    def box(self) -> Box | None:
        """The box of the selected frame."""
        return next((box for box in self.boxes if box.node == self.selected), None)

    def select(self, node: int) -> None:
        self.selected = node
        box = self.box()
        if box is not None:  # it is visible
            self._first = max(box.depth - self.size.height + 1, min(self._first, box.depth))
        self.refresh()
        self.post_message(self.Selected())

    def zoom(self, node: int) -> None:
        self.zoomed = self.selected = node
        self._first = 0
        self._place()
        box = self.box()
        if box is not None:
            self._first = max(0, box.depth - _ABOVE_SHOWN)
            self.refresh()

    def action_zoom_in(self) -> None:
        self.zoom(self.selected)

    def action_zoom_out(self) -> None:
        if self.flame is not None:
            self.zoom(self.flame.parent(self.zoomed))

    def action_zoom_all(self) -> None:
        self.zoom(ROOT)

    def action_go_up(self) -> None:
        if self.flame is not None:
            self.select(self.flame.parent(self.selected))

    def action_go_down(self) -> None:
        """Moves to the widest callee."""
        inner = [
            box
            for box in self.boxes
            if self.flame and box.node != ROOT and self.flame.parent(box.node) == self.selected
        ]
        if inner:
            self.select(max(inner, key=lambda box: box.width).node)

    def action_go_aside(self, by: int) -> None:
        box = self.box()
        if box is not None:
            row = self._by_depth[box.depth]
            self.select(row[max(0, min(len(row) - 1, row.index(box) + by))].node)

    def go_to_found(self, by: int) -> None:
        """Moves to the next matching frame, in the order of the boxes. Zooms out if none is visible, and to the longest
        if all are too narrow to be drawn."""
        if self.found and not any(box.node in self.found for box in self.boxes):
            self.zoom(ROOT)
        hits = [box.node for box in self.boxes if box.node in self.found]
        if self.found and not hits and self.flame is not None:
            hits = [max(self.found, key=self.flame.total)]
            self.zoom(hits[0])
        if hits:
            at = hits.index(self.selected) + by if self.selected in hits else 0 if by > 0 else -1
            self.select(hits[at % len(hits)])

    def on_click(self, event: events.Click) -> None:
        row = self._by_depth.get(event.y + self._first, [])
        box = next((each for each in row if each.left <= event.x < each.left + each.width), None)
        if box is None:
            return
        if event.chain > 1:
            self.zoom(box.node)
        else:
            self.select(box.node)

    def on_mouse_scroll_down(self) -> None:
        self._scroll(3)

    def on_mouse_scroll_up(self) -> None:
        self._scroll(-3)

    def _scroll(self, by: int) -> None:
        self._first = max(0, min(self._first + by, max(self._by_depth, default=0)))
        self.refresh()

    def on_resize(self) -> None:
        self._place()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        segments: list[Segment] = []
        at = 0
        for box in self._by_depth.get(y + self._first, []):
            if box.left > at:
                segments.append(Segment(" " * (box.left - at), Style()))
            segments.append(self._segment(box))
            at = box.left + box.width
        return Strip(segments).adjust_cell_length(width, Style())

    def _segment(self, box: Box) -> Segment:
        assert self.flame is not None
        frame = self.flame.frame(box.node)
        name = printable(frame["name"])
        if box.width < 3:
            text = "▏" + " " * (box.width - 1)
        else:
            text = f"▏{shorten(name, box.width - 1):<{box.width - 1}}"
        if box.node == self.selected or box.node == ROOT:
            style = Style(reverse=True, bold=box.node == self.selected)
        elif box.node in self.found:
            style = Style(color="bright_white", bgcolor="red", bold=True)
        else:
            key = zlib.crc32((frame["file"] or name).encode(errors="replace"))
            style = Style(color="black", bgcolor=_PALETTE[key % len(_PALETTE)])
        return Segment(text, style)


class FlameView(Vertical):
    """The graph, the selected frame, and the search."""

    DEFAULT_CSS = """
    FlameView Input { display: none; padding: 0 1; }
    FlameView FlameGraph { height: 1fr; }
    FlameView .note { height: 2; padding: 0 1; }
    """
    BINDINGS = [
        Binding("slash", "search", "Search", priority=True),
        Binding("enter", "end_typing", show=False, priority=True),
        Binding("n", "next(1)", "Next", show=False),
        Binding("N", "next(-1)", "Previous", show=False),
        Binding("escape", "leave_search", show=False),
    ]

    def compose(self) -> ComposeResult:
        yield Input(
            placeholder="search: part of the name of a function or operator", select_on_focus=False, compact=True
        )
        yield FlameGraph()
        yield Static(classes="note", markup=False)

    @property
    def graph(self) -> FlameGraph:
        return self.query_one(FlameGraph)

    def show(self, flame: Flame) -> None:
        self.graph.show(flame)
        self._describe()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Like TableView.check_action."""
        if action == "search":
            return not self.query_one(Input).has_focus
        return action != "end_typing" or self.query_one(Input).has_focus

    def action_search(self) -> None:
        field = self.query_one(Input)
        field.display = True
        self.screen.set_focus(field)

    def action_leave_search(self) -> None:
        field = self.query_one(Input)
        if not field.has_focus:
            field.value = ""
        self.screen.set_focus(self.graph)
        field.display = bool(field.value)

    def action_next(self, by: int) -> None:
        self.graph.go_to_found(by)

    @on(Input.Changed)
    def _find(self) -> None:
        graph = self.graph
        graph.found = graph.flame.find(self.query_one(Input).value) if graph.flame else set()
        graph.refresh()
        self._describe()

    def action_end_typing(self) -> None:
        self._find()  # the last change of the text may not have been reported yet
        self.action_leave_search()
        self.graph.go_to_found(1)

    @on(FlameGraph.Selected)
    def _describe(self) -> None:
        graph = self.graph
        flame = graph.flame
        if flame is None:
            return
        all_ns = flame.total(ROOT)
        node = graph.selected
        frame = flame.frame(node)
        share = flame.total(node) / all_ns if all_ns else 0
        figures = f"total {cell_text(flame.total(node), 'ns')} ({cell_text(share, 'share')}), self {cell_text(flame.self_time(node), 'ns')}"
        search = self.query_one(Input).value
        if search:
            time = flame.time_of(graph.found)
            part = time / all_ns if all_ns else 0
            figures += (
                f"; '{search}': {len(graph.found):,} frames, {cell_text(time, 'ns')} ({cell_text(part, 'share')})"
            )
        name = f"{printable(frame['name'])}  {place(frame['file'], frame['line'])}"
        self.query_one(".note", Static).update(f"{shorten(name, max(10, self.size.width - 2))}\n{figures}")
