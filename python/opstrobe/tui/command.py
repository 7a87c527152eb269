# SPDX-License-Identifier: Apache-2.0
"""The command `opstrobe tui`. Textual is imported when everything else is known to be right."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from opstrobe.tui.source import Source

_DESCRIPTION = """\
Shows a trace in the terminal: overview, operators, modules, lines of the program, flame graph, memory and advice.
Works over ssh. Press ? for the keys and q to quit."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="opstrobe tui",
        usage="opstrobe tui [options] TRACE|DIRECTORY",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("trace", metavar="TRACE|DIRECTORY", help="a trace file, or a directory to choose one from")
    return parser


def _fail(message: str, status: int = 1) -> NoReturn:
    print(f"opstrobe tui: {message}", file=sys.stderr)
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
    try:
        source = Source(options.trace)
    except OSError as error:
        _fail(error.strerror or str(error))
    except (ValueError, NotImplementedError) as error:
        _fail(str(error))
    app = TraceApp(source)
    app.run()
    sys.stdout.flush()
    if source.is_busy:  # a reply that nobody waits for any more cannot be interrupted
        os._exit(app.return_code or 0)
    source.close()
    raise SystemExit(app.return_code or 0)
