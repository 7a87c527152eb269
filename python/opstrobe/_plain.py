# SPDX-License-Identifier: Apache-2.0
"""Text on terminals. Names come from traces, programs and file systems, and may contain any characters."""

from __future__ import annotations

import sys


def printable(text: str) -> str:
    """One line, with '?' for characters that move the cursor, change the writing direction, or are not shown."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def message_text(sender: str, message: object) -> str:
    """What a command prints to report something. Further lines are indented, so that no name can imitate a message."""
    return f"{sender}: " + "\n  ".join(map(printable, str(message).split("\n")))


def print_message(sender: str, message: object) -> None:
    print(message_text(sender, message), file=sys.stderr, flush=True)
