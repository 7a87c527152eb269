# SPDX-License-Identifier: Apache-2.0
# The extension that serves, as type checkers see it.

import os
from typing import final

@final
class Api:
    def __new__(
        cls,
        paths: tuple[bytes, ...],
        *,
        watch: bool = False,
        memory_bytes: int = 0,
        request_memory_bytes: int = 0,
        request_seconds: float = 0.0,
    ) -> Api: ...
    def get(self, target: str, /) -> tuple[int, str, bytes]: ...
    def close(self) -> None: ...

@final
class Server:
    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def port(self) -> int: ...
    def __new__(
        cls,
        paths: tuple[bytes, ...],
        *,
        port: int = 0,
        address: str | None = None,
        remote: bool = False,
        frame_origin: str | None = None,
        watch: bool = False,
        memory_bytes: int = 0,
        request_memory_bytes: int = 0,
        request_seconds: float = 0.0,
    ) -> Server: ...
    def stop(self) -> None: ...

def write_report(trace: str | os.PathLike[str], path: str | os.PathLike[str], /) -> None: ...
