# SPDX-License-Identifier: Apache-2.0
"""A table on the screen: sorted by any column, filtered while typing, with details of a row; a tree if its rows have parents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import DataTable, Input, Static

from opstrobe.tui.figures import bar, cell_text, shorten
from opstrobe.tui.table_model import Column, FilterError, Line, Row, Test, parse_filter, sort_rows, tree_lines

ROWS_SHOWN = 1000
_BAR_WIDTH = 8
_NAME_LEAST = 24
_PADDING = 2


class Rows(DataTable[Text]):
    """The table itself. Rows are selected, not cells: left and right scroll, Home and End go to the first and last row."""

    BINDINGS = [
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]

    def on_resize(self, event: events.Resize) -> None:
        view = self.parent
        if isinstance(view, TableView):
            view.fit(event.size.width)


class TableView(Vertical):
    """Displays the rows passed to `show`."""

    DEFAULT_CSS = """
    TableView Input { display: none; padding: 0 1; }
    TableView .note { height: auto; padding: 0 1; color: $text-muted; }
    TableView .note.wrong { color: $text-error; }
    TableView DataTable { height: 1fr; }
    """
    BINDINGS = [
        Binding("slash", "filter", "Filter", priority=True),
        Binding("enter", "end_typing", show=False, priority=True),
        Binding("s", "sort", "Sort by next"),
        Binding("r", "reverse", "Reverse"),
        Binding("escape", "leave_filter", "End filter", show=False),
    ]

    def __init__(self, order: str, *, empty: str, parent_of: Callable[[Row], int | None] | None = None) -> None:
        super().__init__()
        self.columns: Sequence[Column] = ()
        self.rows: Sequence[Row] = ()
        self.lines: list[Line] = []
        self.order = order
        self.descending = True
        self.is_chosen: Callable[[Row], None] | None = None
        """Called with the row selected by Enter or a second click."""
        self._empty = empty
        self._parent_of = parent_of
        self._folded: set[int] = set()
        self._filter = ""
        self._test: Test | None = None
        self._note = ""
        self._room = 0

    def compose(self) -> ComposeResult:
        yield Input(
            placeholder='filter: words, -word, "some words", calls>10, self>=1.5ms', select_on_focus=False, compact=True
        )
        yield Static(classes="note", markup=False)
        yield Rows(cursor_type="row", zebra_stripes=True, fixed_columns=1)

    @property
    def table(self) -> Rows:
        return self.query_one(Rows)

    def show(self, columns: Sequence[Column], rows: Sequence[Row], note: str = "") -> None:
        """Replaces the rows. `note` is a sentence above them."""
        self.columns, self.rows, self._note = columns, rows, note
        if not any(column.id == self.order for column in columns):
            self.order = columns[0].id
        self._apply_filter(self._filter)

    def fit(self, width: int) -> None:
        """Adapts to a change of the available space."""
        if width != self._room:
            self._room = width
            self._draw()

    # --- what the user does

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys around a filter have priority, so that characters typed right after them are not lost."""
        if action == "filter":
            return not self.query_one(Input).has_focus  # there it is a character
        return action != "end_typing" or self.query_one(Input).has_focus

    def action_filter(self) -> None:
        field = self.query_one(Input)
        field.display = True
        self.screen.set_focus(field)

    def action_leave_filter(self) -> None:
        field = self.query_one(Input)
        if field.has_focus or not field.value:
            self.screen.set_focus(self.table)
            field.display = bool(field.value)
        else:
            field.value = ""
            field.display = False

    def action_sort(self) -> None:
        ids = [column.id for column in self.columns]
        if ids:
            self._sort(ids[(ids.index(self.order) + 1) % len(ids)])

    def action_reverse(self) -> None:
        self.descending = not self.descending
        self._draw()

    @on(DataTable.HeaderSelected)
    def _header_selected(self, event: DataTable.HeaderSelected) -> None:
        if event.column_key.value == self.order:
            self.action_reverse()
        elif event.column_key.value is not None:
            self._sort(event.column_key.value)

    @on(DataTable.RowSelected)
    def _row_selected(self, event: DataTable.RowSelected) -> None:
        if self.is_chosen is not None and event.cursor_row < len(self.lines):
            self.is_chosen(self.lines[event.cursor_row].row)

    @on(Input.Changed)
    def _filter_typed(self, event: Input.Changed) -> None:
        self._apply_filter(event.value)

    def action_end_typing(self) -> None:
        self.action_leave_filter()

    def fold(self) -> None:
        """Opens or closes the tree node at the cursor."""
        at = self.table.cursor_row
        if at < len(self.lines) and self.lines[at].is_open is not None:
            self._folded ^= {self._number(self.lines[at].row)}
            self._draw(at)

    # --- what is drawn

    def _number(self, row: Row) -> int:
        return next(number for number, each in enumerate(self.rows) if each is row)

    def _sort(self, order: str) -> None:
        self.order = order
        column = self._column()
        self.descending = column is not None and not column.is_text
        self._draw()

    def _column(self) -> Column | None:
        return next((column for column in self.columns if column.id == self.order), None)

    def _apply_filter(self, text: str) -> None:
        """An invalid filter leaves the rows unchanged and shows the error."""
        self._filter = text
        try:
            self._test = parse_filter(text, self.columns) if text.strip() else None
        except FilterError as error:
            self._write_note(str(error), wrong=True)
            return
        self._draw()

    def _write_note(self, text: str, *, wrong: bool = False) -> None:
        note = self.query_one(".note", Static)
        note.update(text)
        note.set_class(wrong, "wrong")
        note.display = bool(text)

    def _find_lines(self) -> list[Line]:
        if self._parent_of is not None:
            return tree_lines(self.rows, self._parent_of, self._column(), self.descending, self._folded, self._test)
        kept = [row for row in self.rows if self._test is None or self._test(row)]
        return [Line(row) for row in sort_rows(kept, self._column(), self.descending)]

    def _draw(self, cursor: int = 0) -> None:
        if not self.columns or not self._room:
            return
        lines = self._find_lines()
        self.lines = lines[:ROWS_SHOWN]
        texts = [[self._text(line, column, i == 0) for i, column in enumerate(self.columns)] for line in self.lines]
        largest = [self._largest(column) for column in self.columns]
        titles = [self._title(column) for column in self.columns]
        widths = [max([len(titles[i]), *(len(row[i]) for row in texts)]) for i in range(len(titles))]
        widths = [width + (1 + _BAR_WIDTH) * column.bar for width, column in zip(widths, self.columns)]
        widths = self._fit_texts(widths)
        table = self.table
        table.clear(columns=True)
        for column, title, width in zip(self.columns, titles, widths):
            right = not column.is_text and not column.bar
            table.add_column(Text(title, justify="right" if right else "left"), key=column.id, width=width)
        for line, row in zip(self.lines, texts):
            table.add_row(
                *(
                    self._cell(line.row, column, text, width, most)
                    for column, text, width, most in zip(self.columns, row, widths, largest)
                )
            )
        if self.lines:
            table.move_cursor(row=min(cursor, len(self.lines) - 1))
        self._write_note(self._state(len(lines)))

    def _state(self, count: int) -> str:
        if not self.rows:
            return self._note or self._empty
        if not count:
            return f"No row matches the filter '{self._filter}'. Escape ends it."
        shown = f"{count:,} of {len(self.rows):,} rows" if self._test is not None else ""
        rest = f"the first {ROWS_SHOWN:,} of {count:,} rows; a filter finds the others" if count > ROWS_SHOWN else ""
        return "; ".join(part for part in (self._note, rest or shown) if part)

    def _title(self, column: Column) -> str:
        return column.title + (("▼" if self.descending else "▲") if column.id == self.order else "")

    def _text(self, line: Line, column: Column, is_first: bool) -> str:
        text = cell_text(column.shown(line.row) if column.shown else column.value(line.row), column.kind)
        if not is_first or self._parent_of is None:
            return text
        sign = "" if line.is_open is None else "▾ " if line.is_open else "▸ "
        return "  " * line.depth + (sign or "  ") + text

    def _largest(self, column: Column) -> float:
        if not column.bar:
            return 0
        values = (column.value(row) for row in self.rows)
        return max((value for value in values if isinstance(value, (int, float))), default=0)

    def _cell(self, row: Row, column: Column, text: str, width: int, largest: float) -> Text:
        if column.is_text:
            return Text(shorten(text, width), no_wrap=True)
        if not column.bar:
            return Text(text, justify="right", no_wrap=True)
        value = column.value(row)
        share = value / largest if isinstance(value, (int, float)) and largest > 0 else 0
        return Text(f"{text:>{width - 1 - _BAR_WIDTH}} {bar(share, _BAR_WIDTH)}", no_wrap=True)

    def _fit_texts(self, widths: list[int]) -> list[int]:
        """Texts share the space that the figures leave; if that is too small, the table scrolls."""
        texts = [i for i, column in enumerate(self.columns) if column.is_text]
        room = self._room - sum(width + _PADDING for width in widths) + sum(widths[i] for i in texts)
        for place, i in enumerate(texts):
            others = sum(min(widths[j], _NAME_LEAST) for j in texts[place + 1 :])
            widths[i] = min(widths[i], max(_NAME_LEAST, room - others))
            room -= widths[i]
        return widths
