# SPDX-License-Identifier: Apache-2.0
"""The source of figures for the terminal interface: the replies of the server (docs/http-api.md), without a server."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import quote, urlencode

from opstrobe._server import TraceApi

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


class SourceError(Exception):
    """The reason why a request failed, in a sentence."""


class Source:
    """Traces and the replies about them. `get` may take long and is called on threads other than that of the screen."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._api = TraceApi(path)
        self._lock = threading.Lock()
        self._asking = 0
        self.trace = ""
        """Id of the displayed trace."""
        self.steps = ""
        """The steps that views show, such as "0:4", if these are only a part of the trace; "": they show all of it."""
        self.is_whole = False
        """Views show the whole trace nevertheless."""

    def traces(self) -> list[dict[str, Any]]:
        """The available traces, with their states. Returns immediately."""
        traces: list[dict[str, Any]] = self._ask("traces")["traces"]
        return traces

    def get(self, path: str, **parameters: str | int) -> Any:
        """The reply about the displayed trace, such as get("views", parts="steps")."""
        query = {name: value for name, value in parameters.items() if value != ""}
        return self._ask(f"traces/{self.trace}/{quote(path)}" + (f"?{urlencode(query)}" if query else ""))

    def open(self) -> None:
        """Reads the displayed trace, and finds what views open on."""
        opening = self.get("timeline")["opening"]
        self.steps = opening["steps"] if opening else ""

    def get_of_steps(self, path: str, **parameters: str | int) -> Any:
        """The same as `get` about the steps that views show."""
        return self.get(path, **parameters, steps="" if self.is_whole else self.steps)

    def _ask(self, target: str) -> Any:
        with self._lock:
            self._asking += 1
        try:
            reply = self._api.get(f"/api/v1/{target}")
        finally:
            with self._lock:
                self._asking -= 1
        answer = json.loads(reply.body)
        if reply.status != 200:
            raise SourceError(answer["error"]["message"])
        return answer

    @property
    def is_busy(self) -> bool:
        """Returns whether a thread waits for a reply."""
        return self._asking > 0

    def close(self) -> None:
        self._api.close()
