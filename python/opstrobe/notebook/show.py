# SPDX-License-Identifier: Apache-2.0
"""The viewer for a profile or for trace files: in the cell of a notebook, else in the browser."""

from __future__ import annotations

import atexit
import html
import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request

from opstrobe._server import Server
from opstrobe.results.results import Results
from opstrobe.results.trace_file import TraceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opstrobe._server import Path

# Pages from this machine may embed the viewer, including those of VS Code. Without the token it shows nothing.
_FRAME_ORIGINS = (
    "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview: vscode-file:"
)
_LISTED_WITHIN_S = 30.0  # a server that watches directories lists new files at once


class _Exhibition:
    """Everything that this process shows until it ends: traces of profiles, in a separate directory, and files."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="opstrobe-")
        self._servers: dict[str, Server] = {}
        self._profiles = 0
        atexit.register(self._close)

    def _close(self) -> None:
        if self.pid != os.getpid():
            return
        for server in self._servers.values():
            server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def file_of(self, profile: Results) -> str:
        """Returns the file with the trace of a profile. It is written once per recording, uncompressed, since
        compression takes longer."""
        trace = profile._trace_for("show it")
        shown: tuple[_Exhibition, object, str] | None = getattr(profile, "_shown", None)
        if shown is not None and shown[0] is self and shown[1] is trace:
            return shown[2]
        self._profiles += 1
        path = os.path.join(self._folder, f"profile{self._profiles}.pt.trace.json")
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".") as unfinished:
            written = os.path.join(unfinished, "trace.json")
            trace.export_chrome_trace(written)
            os.replace(written, path)
        profile._shown = (self, trace, path)  # type: ignore[attr-defined]
        return path

    def server_of(self, path: str) -> Server:
        """Returns the server for a path: one for all profiles, and one for each other path."""
        served = self._folder if os.path.dirname(path) == self._folder else os.path.realpath(path)
        if served not in self._servers:
            self._servers[served] = Server(served, frame_origin=_FRAME_ORIGINS)
        return self._servers[served]

    def report_of(self, path: str) -> str:
        """Returns the trace as a page that contains the viewer."""
        from opstrobe import _serve

        report = os.path.join(self._folder, "report.html")
        _serve.write_report(path, report)
        with open(report, encoding="utf-8") as file:
            text = file.read()
        os.unlink(report)
        return text


_exhibition: _Exhibition | None = None


def _here() -> _Exhibition:
    global _exhibition
    if _exhibition is None or _exhibition.pid != os.getpid():
        _exhibition = _Exhibition()
    return _exhibition


def _route_of(server: Server, path: str) -> str:
    """Returns the route of a trace in the viewer: "#/overview/ID". For a directory it is that of the first trace."""
    if os.path.isdir(path):
        return ""
    request = urllib.request.Request(
        f"{server.url.partition('?')[0]}api/v1/traces", headers={"Authorization": f"Bearer {server.token}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _LISTED_WITHIN_S
    while True:
        with opener.open(request) as reply:
            traces = json.load(reply)["traces"]
        for trace in traces:
            if os.path.realpath(trace["path"]) == os.path.realpath(path):
                return f"#/overview/{trace['id']}"
        if time.monotonic() > deadline:
            return ""
        time.sleep(0.02)


def in_notebook() -> bool:
    """Returns whether a page displays the output of this process."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _is_remote() -> bool:
    """Returns whether the browser is known to run where this machine's addresses cannot be reached."""
    return "JUPYTERHUB_SERVICE_PREFIX" in os.environ or "google.colab" in sys.modules


# A page in a frame inherits the colour scheme of the frame. Notebooks mark their theme, but do not set the scheme.
_SCHEMES = (
    "<style>[data-jp-theme-light=true] .opstrobe-viewer,[data-vscode-theme-kind$=light] .opstrobe-viewer{color-scheme:light}"
    "[data-jp-theme-light=false] .opstrobe-viewer,[data-vscode-theme-kind]:not([data-vscode-theme-kind$=light])"
    " .opstrobe-viewer{color-scheme:dark}</style>"
)


class _Frame:
    """The viewer embedded in a notebook's page."""

    def __init__(self, attributes: str, height: int, below: str = "") -> None:
        self._html = (
            f'{_SCHEMES}<iframe class="opstrobe-viewer" title="Opstrobe" width="100%" height="{height}" '
            f'style="border:1px solid #8886;border-radius:4px" {attributes}></iframe>{below}'
        )

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return "<the viewer of Opstrobe>"


def _server_frame(path: str, height: int) -> _Frame:
    server = _here().server_of(path)
    route = _route_of(server, path)
    link = html.escape(server.url + route)
    return _Frame(
        f'src="{html.escape(server.frame_url + route)}"',
        height,
        f'<div><a href="{link}" target="_blank" rel="noopener">Open the viewer in a new tab</a></div>',
    )


def _report_frame(path: str, height: int) -> _Frame:
    # Without a base, links within the page would be relative to the notebook.
    page = _here().report_of(path).replace("<head>", '<head><base href="about:srcdoc">', 1)
    sandbox = "allow-scripts allow-downloads allow-popups"
    return _Frame(f'sandbox="{sandbox}" srcdoc="{html.escape(page)}"', height)


def _has_browser() -> bool:
    return any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))


def _is_script_at_terminal() -> bool:
    """Returns whether the program, and the viewer with it, would end before the user could look at it."""
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive) or "IPython" in sys.modules
    return not interactive and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _show_in_browser(path: str, block: bool | None) -> None:
    server = _here().server_of(path)
    url = server.url + _route_of(server, path)
    print(url, flush=True)
    if _has_browser():
        from opstrobe._server import open_privately

        open_privately(url)
    if block or (block is None and _is_script_at_terminal()):
        try:
            print("Ctrl-C goes on with the program", file=sys.stderr, flush=True)
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


def show(what: Results | Path, *, inline: bool | None = None, height: int = 640, block: bool | None = None) -> None:
    """Shows a profile, a trace file or a folder of them in the viewer.

    In a notebook, shows it in the cell, in a frame `height` pixels high that is served by this process. `inline` embeds
    the complete viewer in the notebook's file instead (like `opstrobe report`). It then needs no server, and also works
    if the browser is on another machine, or the notebook was saved and sent to someone. This is the default on
    JupyterHub and Colab.

    Elsewhere, prints the address, and opens it in the browser if there is one. `block` then waits until Ctrl-C. This is
    the default for a script at a terminal, since the server ends with the script.
    """
    if isinstance(what, Results) and not isinstance(what, TraceFile):
        path = _here().file_of(what)
    else:
        path = what.path if isinstance(what, TraceFile) else os.fspath(what)
        os.stat(path)
    if not in_notebook():
        _show_in_browser(path, block)
        return
    from IPython.display import display

    show_whole = _is_remote() if inline is None else inline
    frame: Any = _report_frame(path, height) if show_whole else _server_frame(path, height)
    display(frame)
