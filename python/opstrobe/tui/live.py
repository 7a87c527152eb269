# SPDX-License-Identifier: Apache-2.0
"""A running program: `opstrobe tui --live`. `opstrobe run` records it and sends the figures of `--live` as JSON."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Log, Static

from opstrobe._plain import printable
from opstrobe.tui.figures import cell_text, curve
from opstrobe.tui.table import TableView
from opstrobe.tui.table_model import Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.tui.app import TraceApp

_STEPS_DRAWN = 40
_MESSAGE_BYTES = 65536
_OUTPUT_LINES = 1000


class Program:
    """Runs `opstrobe run` with these arguments. Its output and its figures are passed to functions, on threads of this
    object."""

    def __init__(
        self,
        words: Sequence[str],
        on_state: Callable[[dict[str, Any]], None],
        on_line: Callable[[str], None],
        on_end: Callable[[int], None],
    ) -> None:
        self._on_state, self._on_line, self._on_end = on_state, on_line, on_end
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "opstrobe.run", f"--live-socket={theirs.fileno()}", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env={"PYTHONUNBUFFERED": "1", **os.environ},
                start_new_session=True,  # Ctrl-C is a key of the screen
            )
        self._socket = ours
        threading.Thread(target=self._read_figures, daemon=True).start()
        threading.Thread(target=self._read_output, daemon=True).start()

    def _read_figures(self) -> None:
        with self._socket as source:
            while message := source.recv(_MESSAGE_BYTES):
                self._on_state(json.loads(message))

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_line(line.decode(errors="replace").rstrip("\n"))
        self._on_end(self._process.wait())

    def stop(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)


class LiveView(Vertical):
    """Operators and ranges with most self time so far, steps, memory, and the output of the program."""

    DEFAULT_CSS = """
    LiveView .state { height: auto; padding: 0 1; }
    LiveView TableView { height: 2fr; }
    LiveView Log { height: 1fr; border-top: solid $primary; }
    """
    BINDINGS = [Binding("ctrl+c", "interrupt", "Interrupt", priority=True)]

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.words = words
        self.program: Program | None = None
        self.status: int | None = None
        """Exit status of the program, once it has ended."""
        self.trace: str | None = None

    @property
    def trace_app(self) -> TraceApp:
        return self.app

    def compose(self) -> ComposeResult:
        yield Static("Starting the program …", classes="state", markup=False)
        yield TableView("self", empty="Nothing is recorded yet.")
        yield Log(max_lines=_OUTPUT_LINES)

    def on_mount(self) -> None:
        self.query_one(Log).border_title = "Output"
        self.query_one(TableView).table.focus()
        soon = self.trace_app.call_soon
        self.program = Program(
            self.words,
            lambda state: soon(self._show, state),
            lambda line: soon(self._print, line),
            lambda status: soon(self._end, status),
        )

    def _show(self, state: dict[str, Any]) -> None:
        if "trace" in state:
            self.trace = state["trace"]
            return
        steps = state["step_ns"]
        facts = [cell_text(state["elapsed_ms"] * 1000, "us"), f"{state['steps']:,} steps"]
        if steps:
            facts.append(f"{cell_text(sum(steps) / len(steps), 'ns')} each {curve(steps[-_STEPS_DRAWN:])}")
        memory = [f"{cell_text(state['resident_bytes'], 'bytes')} resident"]
        for each in state["memory"]:
            name = "CPU" if each["device"] < 0 else f"GPU {each['device']}"
            memory.append(
                f"{name} {cell_text(each['allocated_bytes'], 'bytes')} (peak {cell_text(each['peak_bytes'], 'bytes')})"
            )
        memory.append(f"{state['records']:,} records")
        if state["lost"]:
            memory.append(f"{state['lost']:,} LOST: out of memory")
        self.query_one(".state", Static).update(f"{', '.join(facts)}\n{', '.join(memory)}")
        whole = state["self_ns"]
        columns = [
            Column("name", "Operator or annotation", "text", lambda row: row["name"]),
            Column("self", "Self", "ns", lambda row: row["self_ns"]),
            Column("share", "Share", "share", lambda row: row["self_ns"] / whole if whole else 0, bar=True),
            Column("calls", "Calls", "count", lambda row: row["calls"]),
            Column("total", "Total", "ns", lambda row: row["total_ns"]),
        ]
        self.query_one(TableView).show(columns, state["rows"])

    def _print(self, line: str) -> None:
        self.query_one(Log).write_line(printable(line))

    def _end(self, status: int) -> None:
        self.status = status
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        then = "Enter shows the trace" if self.trace else "no trace was written"
        self.query_one(".state", Static).update(f"The program {how}: {then}, q quits.")
        self.query_one(TableView).is_chosen = lambda row: self.open_trace()
        self.query_one(TableView).table.focus()

    def open_trace(self) -> None:
        if self.trace is not None:
            self.app.call_later(self.trace_app.open_trace, self.trace)

    def action_interrupt(self) -> None:
        """Like Ctrl-C in the program's terminal: the trace is written."""
        if self.program is not None:
            self.program.stop(signal.SIGINT)

    def on_unmount(self) -> None:
        if self.program is not None:
            self.program.stop(signal.SIGTERM)
