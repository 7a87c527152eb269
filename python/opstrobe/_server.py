# SPDX-License-Identifier: Apache-2.0
"""Trace files for clients that use URLs: over HTTP, with the viewer, or within the process."""

from __future__ import annotations

import os
import weakref
from typing import NamedTuple

from opstrobe import _serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    Path = str | os.PathLike[str]
    Paths = Path | Iterable[Path]


def _encoded(paths: Paths) -> tuple[bytes, ...]:
    return tuple(map(os.fsencode, (paths,) if isinstance(paths, (str, os.PathLike)) else paths))


class Server:
    """A server of traces, on separate threads, until `stop` or the end of the program.

    In a process forked from this one, `stop` does nothing.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        port: int = 0,
        host: str | None = None,
        remote: bool = False,
        frame_origin: str | None = None,
        watch: bool = True,
        memory_bytes: int = 0,
        request_memory_bytes: int = 0,
        request_seconds: float = 0.0,
    ) -> None:
        server = _serve.Server(
            _encoded(paths),
            port=port,
            address=host,
            remote=remote,
            frame_origin=frame_origin,
            watch=watch,
            memory_bytes=memory_bytes,
            request_memory_bytes=request_memory_bytes,
            request_seconds=request_seconds,
        )
        self._server = server
        self.stop = weakref.finalize(self, server.stop)
        """Ends the server and its threads. A second call does nothing."""

    @property
    def url(self) -> str:
        """The address to open in a browser. It contains the token of this server, which every request requires."""
        return self._server.url

    @property
    def frame_url(self) -> str:
        """The same for a frame in a page from `frame_origin`."""
        return f"{self.url.partition('?')[0]}t/{self.token}/"

    @property
    def token(self) -> str:
        """The token for programs: `Authorization: Bearer TOKEN`."""
        return self._server.token

    @property
    def port(self) -> int:
        return self._server.port

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<opstrobe.Server {self.url if self.stop.alive else 'stopped'}>"


def serve(
    paths: Paths,
    *,
    port: int = 0,
    host: str | None = None,
    remote: bool = False,
    frame_origin: str | None = None,
    watch: bool = True,
    memory_bytes: int = 0,
    request_memory_bytes: int = 0,
    request_seconds: float = 0.0,
    open_browser: bool = False,
) -> Server:
    """Serves trace files, and those in directories, to the viewer in a browser, like `opstrobe serve`.

    `host` is a numeric address (default: the loopback address). `remote` allows an address that other machines can
    reach. Pages from `frame_origin` may show the viewer in a frame. With `watch`, traces that appear in the directories
    later are listed. Traces are kept in memory up to `memory_bytes` (default: half of the machine's memory). One reply
    may take up to `request_memory_bytes` beyond that (default: half of the machine's memory) and `request_seconds` of
    CPU time (default: 60).

    Raises OSError if a path cannot be read or the address cannot be used, and NotImplementedError if the package was
    built without libmicrohttpd.
    """
    server = Server(
        paths,
        port=port,
        host=host,
        remote=remote,
        frame_origin=frame_origin,
        watch=watch,
        memory_bytes=memory_bytes,
        request_memory_bytes=request_memory_bytes,
        request_seconds=request_seconds,
    )
    if open_browser:
        open_privately(server.url)
    return server


def open_privately(url: str) -> None:
    """Opens an address with a token through a page that only this user can read, since the command line of a browser is
    public."""
    import atexit
    import contextlib
    import html
    import pathlib
    import stat
    import tempfile
    import time
    import webbrowser

    folder = pathlib.Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    # Pages of processes that were killed. A browser has read a page after a minute.
    for left in folder.glob("opstrobe-open-*.html"):
        with contextlib.suppress(OSError):
            status = left.lstat()
            if status.st_uid == os.getuid() and stat.S_ISREG(status.st_mode) and status.st_mtime < time.time() - 60:
                left.unlink()
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="opstrobe-open-", suffix=".html", delete=False) as page:
        page.write(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={html.escape(url)}">\n'
        )
    atexit.register(pathlib.Path(page.name).unlink, missing_ok=True)
    webbrowser.open(pathlib.Path(page.name).as_uri())


class Reply(NamedTuple):
    status: int
    """The HTTP status: 200."""
    type: str
    """The type of the body: "application/json"."""
    body: bytes


class TraceApi:
    """The answers of the server, without a server: for programs that already have an HTTP server.

    Several threads may use it at once. A process forked from this one must create its own.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        watch: bool = False,
        memory_bytes: int = 0,
        request_memory_bytes: int = 0,
        request_seconds: float = 0.0,
    ) -> None:
        self._api = _serve.Api(
            _encoded(paths),
            watch=watch,
            memory_bytes=memory_bytes,
            request_memory_bytes=request_memory_bytes,
            request_seconds=request_seconds,
        )

    def get(self, target: str) -> Reply:
        """Answers a GET of "/api/v1/…" (docs/http-api.md), or of the viewer's files: "/", "/app.js", "/app.css".

        Traces are read at the first request. Errors in the request also result in a reply.
        """
        return Reply(*self._api.get(target))

    def close(self) -> None:
        """Releases threads and traces once all calls of `get` have returned."""
        self._api.close()

    def __enter__(self) -> TraceApi:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
