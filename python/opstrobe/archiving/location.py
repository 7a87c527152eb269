# SPDX-License-Identifier: Apache-2.0
"""The files of an archive.

    LOCATION/_opstrobe.json                                     what makes it an archive
    LOCATION/job=NAME/date=2026-11-23/PART/events.parquet, …    the tables of a trace, or of several
    LOCATION/job=NAME/date=2026-11-23/PART/traces.parquet       what they are; written last
    LOCATION/job=NAME/date=2026-11-23/PART/_file-HASH           an empty file; the hash is that of the file that was added
    LOCATION/job=NAME/date=2026-11-23/PART/_replaces.json       names of the parts that were compacted into this one

A part never changes. In a directory it is written below LOCATION/_staging and becomes visible by a rename; in an object store, by the
last of its files. So a writer that is killed leaves nothing that is listed, and writers need no lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import posixpath
import re
import shutil
import time
import uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, BinaryIO, TypeVar

    _T = TypeVar("_T")

_MARK = "_opstrobe.json"
_STAGING = "_staging"
_REPLACES = "_replaces.json"
_FILE = "_file-"
TRACES = "traces"
COMPACTED = "compact-"
FORMAT = 1
# gcsfs logs a traceback for each error that it raises, too, and Python prints records that nobody handles.
logging.getLogger("gcsfs").addHandler(logging.NullHandler())
# An object store that has not answered after this long is not reached. Clients first look for credentials in several places.
CONTACT_SECONDS = 30.0
# Files of killed writers may belong to a writer that still runs, unless they are older than this.
_LEFT_SECONDS = 86400


@dataclasses.dataclass(frozen=True)
class Part:
    job: str
    date: str
    name: str
    sizes: dict[str, int]  # bytes by table
    file: str | None = None  # hash of the file that was added

    @property
    def is_compacted(self) -> bool:
        return self.name.startswith(COMPACTED)

    @property
    def path(self) -> str:
        return f"job={self.job}/date={self.date}/{self.name}"


def check_job(job: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", job, re.ASCII):
        raise ValueError(f"invalid job '{job}': use letters, digits and the characters . _ + -")
    return job


def default_location() -> str:
    return os.environ.get("OPSTROBE_ARCHIVE") or "opstrobe-archive"


def is_archive(path: str) -> bool:
    """Returns whether a path names an archive. A URL always does."""
    return "://" in path or os.path.isfile(os.path.join(path, _MARK))


def find_archive(path: str) -> Location | None:
    """Returns the archive at a path or URL; None if something else is there."""
    try:
        return Location(path)
    except FileNotFoundError:
        return None


class LocationError(OSError):
    """An object store that cannot be reached or refuses."""


# What fsspec needs in addition.
_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
}


class _LocalFiles:
    """The functions of a file system of fsspec that reading needs."""

    protocol = "file"

    def invalidate_cache(self) -> None:
        pass

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def open(self, path: str, mode: str) -> BinaryIO:
        assert mode == "rb"
        return open(path, "rb")

    def cat_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def find(self, root: str, *, detail: bool) -> dict[str, dict[str, int]]:
        """The files below a directory, without those that another process removes meanwhile."""
        assert detail
        found = {}
        for folder, _, names in os.walk(root, followlinks=True):
            for name in names:
                path = f"{folder}/{name}"
                with contextlib.suppress(FileNotFoundError):
                    found[path] = {"size": os.stat(path).st_size}
        return found


def _open_url(name: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path in it."""
    if "://" not in name:
        return _LocalFiles(), os.path.abspath(os.path.expanduser(name))
    from opstrobe.archiving.packages import fsspec

    scheme = name.partition("://")[0].rpartition("::")[2]
    if scheme not in fsspec.available_protocols():
        raise ValueError(
            f"unknown protocol '{scheme}' in '{name}' (choose from s3, gs and abfs, which need the packages s3fs, gcsfs and adlfs, or "
            'another of fsspec: python -c "import fsspec; print(fsspec.available_protocols())")'
        )
    try:
        files, root = fsspec.core.url_to_fs(name)
    except ImportError as error:
        package = _PACKAGES.get(scheme)
        remedy = f"{scheme}:// needs {package}: pip install {package}" if package else str(error)
        raise LocationError(f"cannot open '{name}': {remedy}") from error
    except OSError as error:  # Hadoop's client lists all places where Java could be
        raise LocationError(f"cannot open '{name}': {str(error).partition(chr(10))[0]}") from error
    return files, root


def _within_limit(name: str, contact: Callable[[], _T]) -> _T:
    """The result of a first contact with an object store. Without a network, its client may repeat requests for minutes, and no
    limit applies to all clients. Its thread does not keep the process alive."""
    import threading

    done: list[tuple[_T | None, BaseException | None]] = []

    def run() -> None:
        try:
            done.append((contact(), None))
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=run, name="opstrobe-archive", daemon=True)
    thread.start()
    thread.join(CONTACT_SECONDS)
    if not done:
        raise LocationError(
            f"cannot open '{name}': no answer within {CONTACT_SECONDS:g} s; check the network and the credentials"
        )
    result, error = done[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


class Location:
    """A directory, or a URL supported by fsspec: s3://bucket/profiles, gs://…, memory://…"""

    def __init__(self, location: str | os.PathLike[str], *, create: bool = False) -> None:
        """With `create`, the first part that is written makes a new archive, so that nothing is left if there is none."""
        self.name = os.fspath(location)
        if "://" in self.name:
            self._exists = _within_limit(self.name, self._open)
        else:
            self._exists = self._open()
        self._umask = _umask()  # here, since reading it changes it for a moment, also for other threads
        if create and not self._exists:
            self._check_is_empty()
        elif not self._exists:
            raise FileNotFoundError(
                f"'{self.name}' is not an archive; 'opstrobe archive add {self.name} TRACE...' makes one"
            )

    def _open(self) -> bool:
        """Returns whether there is an archive."""
        self.files, root = _open_url(self.name)
        self.root = root.rstrip("/")
        self.is_local = "file" in (
            self.files.protocol if isinstance(self.files.protocol, tuple) else (self.files.protocol,)
        )
        with self._naming_errors():
            return self._find()

    def _find(self) -> bool:
        self.files.invalidate_cache()
        mark = self.path(_MARK)
        if not self.files.exists(mark):
            return False
        self._check(json.loads(self.files.cat_file(mark)))
        return True

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        """Raises LocationError with the location for errors of object stores, whose classes are the clients' and which do not name it."""
        try:
            yield
        except ValueError:
            raise
        except Exception as error:
            if self.is_local:
                raise
            raise LocationError(f"cannot open '{self.name}': {error}") from error

    def _check(self, about: dict[str, object]) -> None:
        if about.get("format") != FORMAT:
            raise ValueError(f"'{self.name}' has format {about.get('format')} of archives; this version reads {FORMAT}")

    def _check_is_empty(self) -> None:
        if not self.is_local:
            return
        if os.path.exists(self.root) and not os.path.isdir(self.root):
            raise ValueError(f"'{self.name}' is a file; an archive needs a directory")
        if os.path.isdir(self.root) and any(not name.startswith("_") for name in os.listdir(self.root)):
            raise ValueError(f"'{self.name}' is a directory with other files; an archive needs an empty one")

    def _create(self) -> None:
        mark = self.path(_MARK)
        text = json.dumps({"format": FORMAT}).encode()
        if not self.is_local:
            self.files.pipe_file(mark, text)
            return
        os.makedirs(self.root, exist_ok=True)
        written = f"{mark}.{uuid.uuid4().hex}"
        with open(written, "wb") as file:
            file.write(text)
        os.replace(written, mark)

    def path(self, *names: str) -> str:
        return posixpath.join(self.root, *names)

    def url(self, path: str) -> str:
        """The URL of a file below the location, in the form that DuckDB and pyarrow use."""
        return self.path(path) if self.is_local else str(self.files.unstrip_protocol(self.path(path)))

    # --- reading -----------------------------------------------------------------------------------------------------

    def _all_parts(self) -> dict[str, Part]:
        self.files.invalidate_cache()
        sizes: dict[str, dict[str, int]] = {}
        replaced: set[str] = set()
        with self._naming_errors():
            found = self.files.find(self.root, detail=True)
        for path, about in found.items():
            folder, _, name = path.rpartition("/")
            folder = folder[len(self.root) + 1 :]
            if re.fullmatch(r"job=[^/]+/date=[^/]+/[^/]+", folder):
                sizes.setdefault(folder, {})[name] = int(about["size"])
        parts = {}
        for folder, files in sizes.items():
            if f"{TRACES}.parquet" in files:
                job, date, name = folder.split("/")
                tables = {file[: -len(".parquet")]: size for file, size in files.items() if file.endswith(".parquet")}
                parts[folder] = Part(job[len("job=") :], date[len("date=") :], name, tables)
                marks = [file[len(_FILE) :] for file in files if file.startswith(_FILE)]
                if marks:
                    parts[folder] = dataclasses.replace(parts[folder], file=marks[0])
                if _REPLACES in files:
                    with contextlib.suppress(FileNotFoundError):  # another compaction has just replaced this part
                        replaced |= self._replaced_by(parts[folder])
        self._replaced = replaced
        return parts

    def _replaced_by(self, part: Part) -> set[str]:
        names = json.loads(self.files.cat_file(self.path(part.path, _REPLACES)))
        return {f"job={part.job}/date={part.date}/{name}" for name in names}

    def parts(self) -> list[Part]:
        """The complete parts, without those that were compacted into others, in order of their dates."""
        return sorted(
            (part for path, part in self._all_parts().items() if path not in self._replaced),
            key=lambda part: (part.job, part.date, part.name),
        )

    def names(self, job: str) -> set[str]:
        """The names of the parts of a job, including compacted ones."""
        return {
            path.rpartition("/")[2] for path in {*self._all_parts(), *self._replaced} if path.startswith(f"job={job}/")
        }

    def files_of(self, job: str) -> dict[str, str]:
        """The ids of the traces of a job, by the hash of the file that each was added from."""
        files: dict[str, str] = {}
        for part in self.parts():
            if part.job == job and part.is_compacted:
                with contextlib.suppress(FileNotFoundError):  # another compaction has just replaced this part
                    files.update(self._files_in(part))
            elif part.job == job:
                files[part.file or part.name] = part.name  # earlier versions named parts by the file
        return files

    def _files_in(self, part: Part) -> dict[str, str]:
        from opstrobe.archiving.packages import parquet

        with self.files.open(self.path(part.path, f"{TRACES}.parquet"), "rb") as file:
            rows = parquet.ParquetFile(file).read().to_pylist()
        return {row.get("file") or row["trace"]: row["trace"] for row in rows}

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(
        self,
        job: str,
        date: str,
        name: str,
        fill: Callable[[str], None],
        *,
        file: str | None = None,
        replaces: Iterable[str] = (),
    ) -> bool:
        """Makes a part of the files that `fill` writes into a directory. Returns False if a part of this name
        exists."""
        part = Part(job, date, name, {})
        if not self._exists:
            with self._naming_errors():
                self._create()
            self._exists = True
        with self._staging(name) as folder:
            fill(folder)
            if file is not None:
                with open(os.path.join(folder, f"{_FILE}{file}"), "wb"):
                    pass
            if replaces:
                with open(os.path.join(folder, _REPLACES), "w", encoding="utf-8") as out:
                    json.dump(sorted(replaces), out)
            return self._publish_local(part, folder) if self.is_local else self._publish(part, folder)

    @contextlib.contextmanager
    def _staging(self, name: str) -> Iterator[str]:
        import tempfile

        if self.is_local:
            os.makedirs(self.path(_STAGING), exist_ok=True)
        with contextlib.ExitStack() as stack:
            base = self.path(_STAGING) if self.is_local else None
            folder = tempfile.mkdtemp(prefix=f"{name}.", dir=base)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            yield folder

    def _publish_local(self, part: Part, folder: str) -> bool:
        for entry in os.scandir(folder):
            _sync(entry.path)
        os.chmod(folder, 0o777 & ~self._umask)
        target = self.path(part.path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            os.rename(folder, target)
        except OSError:
            if os.path.isdir(target):
                return False
            raise
        _sync(os.path.dirname(target))
        return True

    def _publish(self, part: Part, folder: str) -> bool:
        last = f"{TRACES}.parquet"
        for name in sorted(os.listdir(folder), key=lambda name: (name == last, name)):
            self.files.put_file(os.path.join(folder, name), self.path(part.path, name))
        return True

    def remove(self, part: Part) -> None:
        """Removes a part from the archive atomically, and then deletes its files."""
        path = self.path(part.path)
        if not self.is_local:
            self.files.rm_file(f"{path}/{TRACES}.parquet")
            self.files.rm(path, recursive=True)
            return
        os.makedirs(self.path(_STAGING), exist_ok=True)
        gone = self.path(_STAGING, f"removed.{uuid.uuid4().hex}")
        os.rename(path, gone)
        shutil.rmtree(gone, ignore_errors=True)

    def clean(self) -> None:
        """Deletes parts that were compacted, and files of writers that were killed at least a day ago."""
        parts = self._all_parts()
        for path in self._replaced & parts.keys():
            self.remove(parts[path])
        if self.is_local and os.path.isdir(self.path(_STAGING)):
            for entry in os.scandir(self.path(_STAGING)):
                if time.time() - entry.stat().st_mtime > _LEFT_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Excludes other compactions and removals in a directory. An object store has no lock."""
        import fcntl

        if not self.is_local:
            yield
            return
        with open(self.path(_MARK), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _sync(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
