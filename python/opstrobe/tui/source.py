# SPDX-License-Identifier: Apache-2.0
"""Where the terminal interface has its figures from: the replies of the server (docs/http-api.md), without a server."""

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
    """Traces and their answers. `get` may take long and is called on threads other than that of the screen."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._api = TraceApi(path)
        self._lock = threading.Lock()
        self._asking = 0
        self.trace = ""
        """Id of the trace that is shown."""

    def traces(self) -> list[dict[str, Any]]:
        """The traces there are, with their states. Returns at once."""
        traces: list[dict[str, Any]] = self._ask("traces")["traces"]
        return traces

    def get(self, path: str, **parameters: str | int) -> Any:
        """The reply about the trace that is shown, such as get("views", parts="steps")."""
        query = {name: value for name, value in parameters.items() if value != ""}
        return self._ask(f"traces/{self.trace}/{quote(path)}" + (f"?{urlencode(query)}" if query else ""))

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
        """Whether a thread waits for an answer."""
        return self._asking > 0

    def close(self) -> None:
        self._api.close()
