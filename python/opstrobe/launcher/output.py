# SPDX-License-Identifier: Apache-2.0
"""The output file of `opstrobe run`. Nothing is overwritten unless the user requests it."""

from __future__ import annotations

import contextlib
import itertools
import os

_ENDINGS = (".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json", ".pftrace.gz", ".pftrace")
_DEFAULT_ENDING = ".pt.trace.json.gz"


def rank_of_job() -> int | None:
    """The rank of a process that torchrun started as one of several. All of them get the same options."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() and os.environ.get("WORLD_SIZE", "1") != "1" else None


class Output:
    """`option` is the value of -o: a file, a directory, or None for the current directory. In a directory the trace is
    named after the program, with a number if that name exists and `force` is false.

    OSError if the trace cannot be written there.
    """

    def __init__(self, option: str | None, program: str, *, force: bool) -> None:
        path = os.path.abspath(option or os.curdir)
        is_named = bool(option) and not (str(option).endswith(os.sep) or os.path.isdir(path))
        directory = os.path.dirname(path) if is_named else path
        try:
            os.makedirs(directory, exist_ok=True)
        except OSError as error:
            raise OSError(f"cannot write '{path}': cannot make '{directory}': {error.strerror}") from None
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(f"cannot write '{path}': no permission to write in '{directory}'")
        name = os.path.basename(path) if is_named else program + _DEFAULT_ENDING
        self._ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "")
        self.directory = directory
        self.rank = rank_of_job()
        suffix = "" if self.rank is None else f".rank{self.rank}"
        self._stem = os.path.join(directory, name.removesuffix(self._ending) + suffix)
        self.path = self._stem + self._ending
        self._start = os.path.join(os.getcwd(), "")  # the user's directory, even if the program changes its own
        self._is_named = is_named
        self._overwrites = force
        self._made: set[str] = set()  # files of size 0 that reserve() made
        if is_named and not force and os.path.isfile(self.path):
            raise FileExistsError(f"cannot write '{self.path}': the file exists; --force overwrites it")

    def name_after(self, program: str) -> None:
        """Names the traces in a directory after another program: the one that this one only starts."""
        if not self._is_named:
            self._stem = os.path.join(self.directory, program)
            self.path = self._stem + self._ending

    def reserve(self, part: str = "") -> str:
        """Reserves the path to write to: "train.2.pt.trace.json.gz" if "train.pt.trace.json.gz" exists. `part` is added to the name
        of the trace of another process: "train.rank1.pt.trace.json.gz"."""
        stem = f"{self._stem}.{part}" if part else self._stem
        if self._overwrites or (self._is_named and not part):
            return stem + self._ending
        for number in itertools.count(1):
            path = stem + (f".{number}" if number > 1 else "") + self._ending
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                self._made.add(path)
                return path
        raise AssertionError

    def drop(self, path: str) -> None:
        """Removes the file made by `reserve` if nothing was written to it."""
        with contextlib.suppress(OSError):
            if path in self._made and os.path.getsize(path) == 0:
                os.unlink(path)

    def shown(self, path: str) -> str:
        """The path as the user would type it."""
        return path.removeprefix(self._start)
