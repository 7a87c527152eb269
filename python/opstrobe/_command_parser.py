# SPDX-License-Identifier: Apache-2.0
"""The argument parser of a command."""

from __future__ import annotations

import argparse


def command_parser(command: str, description: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Descriptions are printed as they are written, and options cannot be abbreviated: a later one would make them ambiguous.
    `usage` replaces the line that argparse makes."""
    return argparse.ArgumentParser(
        prog=f"opstrobe {command}",
        usage=usage,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
