# SPDX-License-Identifier: Apache-2.0
"""What the words of a command line name: traces, or an archive."""

from __future__ import annotations

import glob
import os
import sys

from opstrobe import _core
from opstrobe.compat import nsight_parquet
from opstrobe.query.database import Database
from opstrobe.query.tables import archive_at, trace_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opstrobe.archiving.database import ArchiveDatabase


def is_url(word: str) -> bool:
    return "://" in word and not any(letter.isspace() for letter in word)


def is_source(word: str) -> bool:
    """Returns whether a word names files rather than being a query."""
    return word == "-" or os.path.exists(word) or is_url(word) or bool(_matching(word))


def open_sources(
    words: Sequence[str], *, on_read: Callable[[str, _core.Trace], object] | None = None
) -> Database | ArchiveDatabase:
    """Opens files, directories of traces, quoted patterns and `-`, which is standard input; or one archive.

    Raises ValueError if there are no traces, or other files next to an archive, and OSError for a file that does not exist.
    """
    for word in words:
        place = archive_at(word) if is_url(word) or os.path.isdir(word) else None
        if place is None and is_url(word):
            raise ValueError(f"'{word}' is not an archive; 'opstrobe archive add {word} TRACE...' makes one")
        if place is not None:
            if len(words) > 1:
                raise ValueError(f"'{word}' is an archive, which cannot be combined with other files")
            from opstrobe.archiving.database import ArchiveDatabase

            return ArchiveDatabase(place)
    return Database([source for word in words for source in _traces_of(word)], on_read=on_read)


def _matching(word: str) -> list[str]:
    """The files that match a pattern, which the shell did not expand because it was quoted."""
    return [] if any(letter in word for letter in " \t\n;") else sorted(glob.glob(word))


def selects(words: Sequence[str], file: str) -> bool:
    """Returns whether a file is one of those that the words name."""
    if not os.path.exists(file):
        return False
    paths = (path for word in words for path in ([word] if os.path.exists(word) else _matching(word)))
    return any(os.path.exists(path) and os.path.samefile(path, file) for path in trace_files(paths))


def _traces_of(word: str) -> Iterator[str | _core.Trace]:
    if word == "-":
        yield _core.parse_trace(sys.stdin.buffer.read())
        return
    if nsight_parquet.is_export(word):
        yield nsight_parquet.read_export(word)
        return
    for path in [word] if os.path.exists(word) else _matching(word) or [word]:
        found = list(trace_files([path]))
        if not found:
            raise ValueError(f"no traces in directory '{path}'")
        yield from found
