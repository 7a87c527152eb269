# SPDX-License-Identifier: Apache-2.0
"""Differences as text, JSON, workflow commands of GitHub and the code quality report of GitLab."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os

from opstrobe._plain import printable
from opstrobe.ci.counts import KINDS, Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("text", "json", "github", "gitlab")


def _text_of(change: Change) -> str:
    name = "" if change.name is None else f" {printable(change.name)}"
    return f"{change.kind}{name}: {change.base:,.10g} -> {change.head:,.10g} per step"


def _causes(changes: Sequence[Change]) -> list[Change]:
    """What to annotate: for kinds with higher counts, the names with higher counts, or else the kind."""
    worse = {change.kind for change in changes if change.is_regression}
    named = [
        change for change in changes if change.kind in worse and change.name is not None and change.head > change.base
    ]
    kinds = {change.kind for change in named}
    return named + [change for change in changes if change.is_regression and change.kind not in kinds]


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_repository(file: str) -> str:
    """The path as both services know it: relative to the directory of the repository."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or os.getcwd()
    path = os.path.relpath(file, root) if os.path.isabs(file) else file
    return file if path.startswith(os.pardir) else path


def _github(change: Change) -> str:
    place = ""
    if change.file is not None:
        file = _escaped(printable(_in_repository(change.file))).replace(",", "%2C").replace(":", "%3A")
        place = f"file={file},line={change.line},"
    return f"::error {place}title=opstrobe::{_escaped(_text_of(change))}\n"


def _gitlab(change: Change) -> dict[str, object]:
    return {
        "description": _text_of(change),
        "check_name": f"opstrobe/{change.kind}",
        "fingerprint": hashlib.blake2b(f"{change.kind}/{change.name}".encode(), digest_size=16).hexdigest(),
        "severity": "major",
        "location": {"path": _in_repository(change.file or "opstrobe"), "lines": {"begin": change.line or 1}},
    }


def text(changes: Sequence[Change], form: str) -> str:
    if form == "json":
        found = [{**dataclasses.asdict(change), "regression": change.is_regression} for change in changes]
        return (
            json.dumps({"regression": any(change.is_regression for change in changes), "changes": found}, indent=1)
            + "\n"
        )
    if form == "github":
        return "".join(map(_github, _causes(changes)))
    if form == "gitlab":
        return json.dumps([_gitlab(change) for change in _causes(changes)], indent=1) + "\n"
    if not changes:
        return "no count differs\n"
    lines = [("regression: " if change.is_regression else "") + _text_of(change) for change in changes]
    about = [f"({change.kind}: {KINDS[change.kind][0]})" for change in changes if change.name is None]
    return "\n".join(lines + about) + "\n"
