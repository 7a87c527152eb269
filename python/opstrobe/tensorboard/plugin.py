# SPDX-License-Identifier: Apache-2.0
"""The viewer as a tab of TensorBoard: `tensorboard --logdir DIR` finds the plugin by its entry point.

TensorBoard's own server replies, using the API within this process. No other port is opened, and any path or proxy that
reaches TensorBoard also reaches the viewer.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import ipaddress
import json
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from tensorboard.plugins.base_plugin import FrontendMetadata, TBContext, TBLoader, TBPlugin
from werkzeug.wrappers import Request, Response

from opstrobe._server import Reply, TraceApi
from opstrobe.tensorboard import legacy_routes, legacy_runs

_NAME = "opstrobe"
_MODULE = "/index.js"
_VIEWER = "/viewer"

# Called by TensorBoard's page of a plugin; the page's base is the plugin's directory.
_RENDER = f"""\
export function render() {{
	const frame = document.createElement("iframe");
	frame.title = "Opstrobe";
	frame.src = "../{_NAME}{_VIEWER}/index.html";
	frame.style.cssText = "position: fixed; inset: 0; width: 100%; height: 100%; border: 0";
	document.body.append(frame);
}}
"""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
}

App = Callable[..., Iterable[bytes]]


class _Traces:
    """The traces below a log directory. A separate thread searches for them, because TensorBoard does not wait."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths
        self._api: TraceApi | None = None
        self._lock = threading.Lock()
        self._first_look = threading.Thread(target=self._look, name="opstrobe", daemon=True)
        self._first_look.start()

    def _look(self) -> TraceApi | None:
        with self._lock:
            if self._api is None:
                # A path that does not exist yet may appear later, as TensorBoard allows.
                there = [path for path in self._paths if os.path.exists(path)]
                if there:
                    self._api = TraceApi(there, watch=True)
            return self._api

    def get(self, target: str) -> Reply:
        api = self._look()
        if api is not None:
            return api.get(target)
        if target == "/api/v1/traces":
            return Reply(200, "application/json", b'{"generation":0,"watching":true,"traces":[]}')
        return _error(404, "the directory does not exist yet")

    def are_there(self) -> bool:
        """Returns whether there is a trace; True while that is unknown, so that the tab is shown."""
        self._first_look.join(1)
        if self._first_look.is_alive():
            return True
        return bool(json.loads(self.get("/api/v1/traces").body)["traces"])


def _paths_of(context: TBContext) -> tuple[str, ...]:
    spec = getattr(context.flags, "logdir_spec", "") or ""
    named = [part.rpartition(":")[2] for part in spec.split(",") if part]  # "name:path,path"
    return tuple(os.path.expanduser(path) for path in (context.logdir, *named) if path)


@functools.cache
def _traces_below(paths: tuple[str, ...]) -> _Traces:
    """Shared by all plugins of a process."""
    return _Traces(paths)


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


class OpstrobePlugin(TBPlugin):  # type: ignore[misc]
    """The tab: the viewer's files and the API, below `data/plugin/opstrobe/viewer/`."""

    plugin_name = _NAME

    def __init__(self, context: TBContext) -> None:
        self._traces = _traces_below(_paths_of(context))
        flags = context.flags
        self._is_open = bool(getattr(flags, "bind_all", False) or getattr(flags, "host", None))

    def get_plugin_apps(self) -> dict[str, App]:
        return {_MODULE: self._serve_module, _VIEWER + "/*": self._serve_viewer}

    def is_active(self) -> bool:
        return self._traces.are_there()

    def frontend_metadata(self) -> FrontendMetadata:
        return FrontendMetadata(es_module_path=_MODULE, tab_name="Opstrobe", disable_reload=True)

    def _serve_module(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return _respond(Request(environ), Reply(200, "text/javascript", _RENDER.encode()))(environ, start_response)

    def _serve_viewer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        path = request.path.partition(f"/plugin/{_NAME}{_VIEWER}")[2]
        if path == "/index.html":
            path = "/"
        # A page from elsewhere that uses another name for this machine could read whatever TensorBoard serves. That
        # must not include source files, unless the user allows access from elsewhere.
        if path.endswith("/source") and not (self._is_open or _is_loopback(request.host)):
            reply = _error(403, "source files are shown only if TensorBoard is opened by a name of this machine itself")
        else:
            query = request.query_string.decode("latin-1")
            reply = self._traces.get(quote(path, safe="/:,") + (f"?{query}" if query else ""))
        return _respond(request, reply)(environ, start_response)


class FormerPlugin(TBPlugin):  # type: ignore[misc]
    """The routes of the former plugin for PyTorch's traces, for clients that request them, and its place in
    addresses."""

    plugin_name = "pytorch_profiler"

    def __init__(self, context: TBContext) -> None:
        self._traces = _traces_below(_paths_of(context))

    def get_plugin_apps(self) -> dict[str, App]:
        apps: dict[str, App] = {_MODULE: self._serve_module}
        for route, answer in legacy_runs.ALL_ROUTES.items():
            apps[route] = functools.partial(self._serve, answer)
        return apps

    def is_active(self) -> bool:
        return False  # one tab is enough

    def frontend_metadata(self) -> FrontendMetadata:
        return FrontendMetadata(es_module_path=_MODULE, tab_name="PyTorch Profiler (Opstrobe)", disable_reload=True)

    _serve_module = OpstrobePlugin._serve_module

    def _serve(self, answer: legacy_routes.Answer, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        try:
            found = answer(self._traces.get, request.args)
            reply = found if isinstance(found, Reply) else Reply(200, "application/json", json.dumps(found).encode())
        except legacy_routes.RequestError as error:
            reply = _error(error.status, str(error))
        return _respond(request, reply)(environ, start_response)


class FormerPluginLoader(TBLoader):  # type: ignore[misc]
    """Leaves the name to the former plugin if that is installed, since TensorBoard rejects two plugins of one name."""

    def load(self, context: TBContext) -> FormerPlugin | None:
        return None if importlib.util.find_spec("torch_tb_profiler") else FormerPlugin(context)


def _error(status: int, message: str) -> Reply:
    return Reply(status, "application/json", json.dumps({"error": {"status": status, "message": message}}).encode())


_LEAST_TO_PACK = 1024


def _respond(request: Request, reply: Reply) -> App:
    body = reply.body
    response = Response(status=reply.status, content_type=reply.type, headers=_HEADERS)
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["Vary"] = "Accept-Encoding"
    if len(body) >= _LEAST_TO_PACK and request.accept_encodings.quality("gzip") > 0:
        body = gzip.compress(body, 1)
        response.headers["Content-Encoding"] = "gzip"
    response.set_data(body)
    app: App = response
    return app
