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

    `dir_name` may be a URL that fsspec supports, such as "s3://bucket/traces" (`pip install 'opstrobe[archive]' s3fs`). Raises
    ImportError if a package for it is missing, and ValueError if it is of an unknown kind.
    """
    is_url = isinstance(dir_name, str) and "://" in dir_name
    if is_url:
        _check_url(str(dir_name))
    if not isinstance(dir_name, (str, os.PathLike)):
        warn(
            "tensorboard_trace_handler was given to on_trace_ready uncalled, so no trace is written; "
            "use on_trace_ready=tensorboard_trace_handler('directory')"
        )

    def write_trace(prof: _KinetoProfile) -> None:
        if is_url:
            _write_to_url(prof, str(dir_name), name_of_trace(), use_python_export)
            return
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {os.fspath(dir_name)}") from error
        prof.export_chrome_trace(os.path.join(dir_name, name_of_trace()), use_python_export)

    def name_of_trace() -> str:
        worker = worker_name or _worker_of_this_process()
        return f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")

    return write_trace


def _check_url(url: str) -> None:
    """Fails before the program runs, not when its first trace is complete."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(
            f"writing traces to '{url}' needs {error.name}: pip install 'opstrobe[archive]'", name=error.name
        ) from error
    fsspec.get_filesystem_class(url.partition("://")[0].rpartition("::")[2])


def _write_to_url(prof: _KinetoProfile, url: str, name: str, use_python_export: bool) -> None:
    import tempfile

    import fsspec

    files, folder = fsspec.core.url_to_fs(url)
    with tempfile.TemporaryDirectory(prefix="opstrobe-") as staging:
        path = os.path.join(staging, name)
        prof.export_chrome_trace(path, use_python_export)
        files.makedirs(folder, exist_ok=True)
        files.put_file(path, f"{folder.rstrip('/')}/{name}")
