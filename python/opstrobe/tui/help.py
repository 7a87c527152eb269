# SPDX-License-Identifier: Apache-2.0
"""Sheets above the views: the keys, and details of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = [
    ("Everywhere", [
        ("1 to 8", "go to a view; so does a click on its name"),
        ("arrows, page keys", "move; left and right scroll wide tables"),
        ("Home, End", "first and last row of a table"),
        ("t", "the steps alone, or the whole trace"),
        ("?", "these keys"),
        ("q, Ctrl-Q", "quit"),
    ]),
    ("Tables", [
        ("Enter", "details of the row"),
        ("/", "filter: words, -word, calls>10, self>=1.5ms"),
        ("Escape", "leave the filter; again: end it"),
        ("s, r", "sort by the next column; reverse"),
        ("b", "operators: by name, or also by input shapes"),
        ("l", "lines: of the program, or also of libraries"),
        ("Space", "modules: open or close"),
    ]),
    ("Flame graph", [
        ("arrows", "select a caller, a callee, a neighbor"),
        ("Enter, +", "zoom to the selected frame"),
        ("Backspace, -", "zoom out; Home: show all"),
        ("/, n, N", "search; next and previous match"),
        ("b", "backward pass under its forward, or as it ran"),
        ("d", "time on the CPU or on devices"),
        ("w", "fold calls that only pass on to one other call, or keep them"),
        ("h", "leave out the time in which helper threads wait, or keep it"),
    ]),
]  # fmt: skip


class Sheet(ModalScreen[None]):
    """A sheet of text above the views."""

    DEFAULT_CSS = """
    Sheet { align: center middle; }
    Sheet VerticalScroll { width: 92%; max-width: 110; height: auto; max-height: 92%; border: round $primary; padding: 0 1; background: $surface; }
    Sheet Static { width: 100%; height: auto; }
    """
    BINDINGS = [
        Binding("escape,q,enter", "dismiss", "Close"),
        Binding("question_mark", "dismiss", show=False),
        *(Binding(str(number), f"view({number - 1})", show=False) for number in range(1, 9)),
    ]

    def __init__(self, title: str, text: Text | None = None) -> None:
        super().__init__()
        self._heading = title
        self._body = text

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = Text(self._heading, no_wrap=True, overflow="ellipsis").markup
            box.border_subtitle = "Escape closes"
            yield Static(self._body or "Loading …", markup=False)

    async def action_view(self, number: int) -> None:
        self.dismiss()
        await self.app.run_action(f"app.view({number})")

    def show(self, text: Text) -> None:
        self._body = text
        if self.is_mounted:
            self.query_one(Static).update(text)


def keys_sheet() -> Sheet:
    text = Text()
    for title, keys in KEYS:
        text.append(f"{title}\n", "bold")
        for key, what in keys:
            text.append(f"  {key:<18}", "bold")
            text.append(f" {what}\n")
    text.rstrip()
    return Sheet("Keys", text)


class Words:
    """Builds a text of titles, pairs and small tables."""

    def __init__(self) -> None:
        self.text = Text()

    def title(self, title: str) -> None:
        if self.text:
            self.text.append("\n")
        self.text.append(f"{title}\n", "bold")

    def line(self, line: str, style: str = "") -> None:
        self.text.append(f"{line}\n", style)

    def pairs(self, pairs: list[tuple[str, str]]) -> None:
        width = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            self.text.append(f"  {name:<{width}}  ", "dim")
            self.text.append(f"{value}\n")

    def rows(self, rows: Sequence[tuple[str, ...]], right: Callable[[int], bool] = lambda i: i > 0) -> None:
        """Columns that fit their cells, the first aligned to the left, the others to the right."""
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
        for row in rows:
            cells = (f"{c:>{w}}" if right(i) else f"{c:<{w}}" for i, (c, w) in enumerate(zip(row, widths)))
            self.text.append(f"  {'  '.join(cells).rstrip()}\n")

    def done(self) -> Text:
        self.text.rstrip()
        return self.text
