# SPDX-License-Identifier: Apache-2.0
"""Ready-made `on_trace_ready` handlers."""

from __future__ import annotations

import os
import time

from opstrobe._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from opstrobe.profiler import _KinetoProfile


def _worker_of_this_process() -> str:
    import socket

    return f"{socket.gethostname()}_{os.getpid()}"


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[_KinetoProfile], None]:
    """A handler that writes each trace to `<dir_name>/<worker>.<time in ns>.pt.trace.json`, `.gz` added for `use_gzip`.

    The directory is created if it does not exist. The worker's default name is `<host>_<pid>` of the process that
    writes, so processes forked after this call do not use their parent's name.
    """
    if not isinstance(dir_name, (str, os.PathLike)):
        warn(
            "tensorboard_trace_handler was given to on_trace_ready uncalled, so no trace is written; "
            "use on_trace_ready=tensorboard_trace_handler('directory')"
        )

    def write_trace(prof: _KinetoProfile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {os.fspath(dir_name)}") from error
        worker = worker_name or _worker_of_this_process()
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export)

    return write_trace
