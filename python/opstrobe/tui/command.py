# SPDX-License-Identifier: Apache-2.0
"""The command `opstrobe tui`. Textual is imported after everything else has been checked."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from opstrobe._command_parser import command_parser
from opstrobe._plain import print_message
from opstrobe.tui.source import Source

_DESCRIPTION = """\
Shows a trace in the terminal: overview, operators, modules, lines of the program, flame graph, memory and advice.
Works over ssh. Press ? for the keys and q to quit.

With --live, runs and records a program as 'opstrobe run' does with the words that follow, shows what takes time while it
runs, with its output, and then its trace."""
_EXAMPLES = ("tui train.pt.trace.json.gz", "tui --live --with-stack train.py --epochs 1")


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "tui",
        _DESCRIPTION,
        _EXAMPLES,
        "opstrobe tui [options] TRACE|DIRECTORY\n       opstrobe tui --live [options of run] <script.py | -m module | -c code> [arguments]",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "trace", metavar="TRACE|DIRECTORY", nargs="?", help="a trace file, or a directory to choose one from"
    )
    what.add_argument(
        "--live", nargs=argparse.REMAINDER, metavar="WORDS", help="run a program; the words are those of 'opstrobe run'"
    )
    return parser


def _fail(message: str, status: int = 1) -> NoReturn:
    print_message("opstrobe tui", message)
    raise SystemExit(status)


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        _fail("standard input and output must be a terminal; 'opstrobe views' prints text")
    if os.environ.get("TERM", "dumb") == "dumb":
        _fail("the terminal cannot move its cursor (TERM is 'dumb' or not set); 'opstrobe views' prints text")


def main() -> None:
    options = _parser().parse_args()
    _check_terminal()
    try:
        from opstrobe.tui.app import TraceApp
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        _fail(f"the package 'textual' is not installed: {sys.executable} -m pip install 'opstrobe[tui]'")
    if options.live is not None and not options.live:
        _fail("--live requires a program; see 'opstrobe run --help'", 2)
    try:
        source = None if options.live else Source(options.trace)
    except OSError as error:
        _fail(error.strerror or str(error))
    except (ValueError, NotImplementedError) as error:
        _fail(str(error))
    app = TraceApp(source, options.live or ())
    app.run()
    sys.stdout.flush()
    if app.opened is not None and app.opened.is_busy:  # a pending reply cannot be interrupted
        os._exit(app.return_code or 0)
    if app.opened is not None:
        app.opened.close()
    raise SystemExit(app.return_code or 0)
