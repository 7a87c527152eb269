# SPDX-License-Identifier: Apache-2.0
"""Parsing of command-line arguments."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def command_parser(command: str, description: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Creates a parser. Descriptions are printed as written, and options cannot be abbreviated, since a later option
    would make abbreviations ambiguous. `usage` replaces argparse's usage line."""
    return argparse.ArgumentParser(
        prog=f"opstrobe {command}",
        usage=usage,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def split_program(words: Sequence[str], value_options: Collection[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Splits our options from the program with its arguments, which may look like our options. `value_options` take a
    value."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i][:2] not in ("-m", "-c"):
        if words[i] == "--":
            return words[:i], words[i + 1 :]
        i += 2 if words[i] in value_options else 1
    return words[:i], words[i:]


def reason_of(error: BaseException) -> str:
    """What failed and why, for a message."""
    if isinstance(error, OSError) and error.filename:
        return f"cannot open '{error.filename}': {str(error.strerror).lower()}"
    return str(error)
