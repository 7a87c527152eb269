# SPDX-License-Identifier: Apache-2.0
"""The application: shows progress while it reads the trace, then the views in tabs."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Footer, OptionList, ProgressBar, Static, TabbedContent, TabPane

from opstrobe._plain import printable
from opstrobe.tui.help import Sheet, keys_sheet
from opstrobe.tui.live import LiveView
from opstrobe.tui.source import Source, SourceError
from opstrobe.tui.views import VIEWS, View

_POLL_S = 0.1
_HANG_UP_S = 1.0


class TraceApp(App[None]):
    """Shows one trace of a source, or runs a program and then shows its trace."""

    TITLE = "opstrobe"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None  # views choose; the first candidate would be the field of a filter
    CSS = """
    #reading { align: center middle; height: 1fr; }
    #reading Static { width: auto; max-width: 90%; height: auto; }
    #reading ProgressBar { width: auto; }
    OptionList { height: 1fr; }
    TabbedContent { height: 1fr; }
    TabPane { padding: 0; }
    .covers { height: auto; padding: 0 1; color: $text-muted; display: none; }
    .state { height: auto; padding: 0 1; color: $text-muted; }
    .state.wrong { color: $text-error; }
    .words { padding: 0 1; height: auto; }
    """
    BINDINGS = [
        Binding("question_mark", "keys", "Keys"),
        Binding("t", "whole_trace", "Steps/whole trace"),
        Binding("q", "quit", "Quit"),
        *(Binding(str(number), f"view({number - 1})", show=False) for number in range(1, len(VIEWS) + 1)),
    ]

    def __init__(self, source: Source | None, program: Sequence[str] = ()) -> None:
        super().__init__()
        self.opened = source
        self._program = program
        self._has_failed = False
        if os.environ.get("COLORTERM") not in ("truecolor", "24bit") and "256color" not in os.environ.get("TERM", ""):
            self.theme = "ansi-dark"  # the colors of the terminal itself

    def compose(self) -> ComposeResult:
        if self._program:
            yield LiveView(self._program)
        with Vertical(id="reading"):
            yield Static("Looking for traces …", id="what", markup=False)
            yield ProgressBar(total=100, show_eta=False)
        yield Footer()

    @property
    def source(self) -> Source:
        assert self.opened is not None
        return self.opened

    def on_mount(self) -> None:
        if sys.__stdin__ and sys.__stdin__.isatty():
            self.set_interval(_HANG_UP_S, self._end_after_hang_up)
        if self.opened is None:
            self.query_one("#reading").display = False
        else:
            self._find()

    def _end_after_hang_up(self) -> None:
        """Ends when the terminal is gone. Not every process receives SIGHUP then, and Textual would read the end of
        input repeatedly."""
        terminal = select.poll()
        terminal.register(0, 0)  # POLLHUP is always reported
        if terminal.poll(0):
            os._exit(1)

    async def open_trace(self, path: str) -> None:
        """Opens the trace of the program, which has ended."""
        await self.query(LiveView).remove()
        self.query_one("#reading").display = True
        self.opened = Source(path)
        self._find()

    def _find(self) -> None:
        traces = self.source.traces()
        if not traces:
            self._fail("no traces in the directory")
        elif len(traces) == 1:
            self._read(traces[0])
        else:
            self._choose(traces)

    # --- answers

    def ask(self, fetch: Callable[[Source], Any], show: Callable[[Any], object], fail: Callable[[str], None]) -> None:
        """Calls `fetch` on another thread, and then `show` or `fail` with the result on that of the screen.

        The thread does not keep the program running, since it may wait for a large trace when the user quits.
        """

        def run() -> None:
            try:
                answer = fetch(self.source)
            except SourceError as error:
                self.call_soon(fail, str(error))
            else:
                self.call_soon(show, answer)

        threading.Thread(target=run, daemon=True).start()

    def call_soon(self, call: Callable[[Any], object], value: Any) -> None:
        """Calls it on the thread of the screen, from any thread; does nothing after the end."""
        if self._loop is not None and self.is_running:
            self._loop.call_soon_threadsafe(self.call_later, call, value)

    # --- reading

    def _choose(self, traces: list[dict[str, Any]]) -> None:
        reading = self.query_one("#reading")
        reading.display = False
        names = [printable(f"{trace['run']}/{trace['name']}") for trace in traces]
        chosen = OptionList(*names, markup=False)
        chosen.border_title = f"{len(traces):,} traces: choose one"
        self.mount(chosen, before=reading)
        chosen.focus()
        self._traces = traces

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.option_list.remove()
        self.query_one("#reading").display = True
        self._read(self._traces[event.option_index])

    def _read(self, trace: dict[str, Any]) -> None:
        self.source.trace = trace["id"]
        self.title = trace["name"]
        self.query_one("#what", Static).update(f"Reading {printable(trace['path'])}")
        self._poll = self.set_interval(_POLL_S, self._show_progress)
        self.ask(lambda source: source.open(), self._show_views, self._fail)

    def _show_progress(self) -> None:
        entry = next(each for each in self.source.traces() if each["id"] == self.source.trace)
        progress = entry["progress"]
        if progress:
            self.query_one(ProgressBar).update(progress=100 * progress["share"] if progress["share"] is not None else 0)
            self.query_one("#what", Static).update(f"Reading {printable(entry['path'])}: {progress['events']:,} events")

    def _fail(self, message: str) -> None:
        self._stop_polling()
        self.query_one(ProgressBar).display = False
        self.query_one("#what", Static).update(f"Cannot show the trace: {printable(message)}\n\nq quits.")
        self._has_failed = True

    def _stop_polling(self) -> None:
        if self.source.trace:
            self._poll.stop()

    async def _show_views(self, _: Any) -> None:
        self._stop_polling()
        reading = self.query_one("#reading")
        tabs = TabbedContent(id="views")
        await self.mount(tabs, before=reading)
        await reading.remove()
        for view in VIEWS:
            await tabs.add_pane(TabPane(view.title, view(), id=view.title.lower()))
        self.action_view(0)

    async def action_quit(self) -> None:
        for live in self.query(LiveView):
            if live.status is None:
                live.action_interrupt()
                live.query_one(".state", Static).update("Interrupting the program; its trace is written. Then q quits.")
                return
        self.exit(return_code=int(self._has_failed))

    # --- views

    def view(self) -> View | None:
        """The current view."""
        tabs = next(iter(self.screen_stack[0].query(TabbedContent)), None)
        pane = tabs.active_pane if tabs is not None else None
        return pane.query_one(View) if pane is not None else None

    def action_view(self, number: int) -> None:
        # The views are on the lowest screen; a sheet above may not have closed yet. What has the focus there would get it
        # back then, and its view would come to the front again.
        views = self.screen_stack[0]
        views.set_focus(None)
        for tabs in views.query(TabbedContent):
            tabs.active = VIEWS[number].title.lower()

    @on(TabbedContent.TabActivated)
    def _activated(self) -> None:
        view = self.view()
        if view is not None:
            view.ask()
            view.focus_content()

    def action_whole_trace(self) -> None:
        """Views show the whole trace, or the steps alone again."""
        if self.opened is None or not self.source.steps or isinstance(self.screen, Sheet):
            return
        self.source.is_whole = not self.source.is_whole
        for view in self.screen_stack[0].query(View):
            view.is_asked &= not view.is_of_steps
        self._activated()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "whole_trace":
            view = self.view() if self.screen_stack else None
            return view is not None and view.is_of_steps and bool(self.source.steps)
        return True

    def action_keys(self) -> None:
        if not isinstance(self.screen, Sheet):
            self.push_screen(keys_sheet())
