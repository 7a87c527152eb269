# SPDX-License-Identifier: Apache-2.0
"""The measured roof of this machine's CPU, kept in the user's cache: `opstrobe roof` and `opstrobe run` measure it, and
recordings include it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from opstrobe.recording import bridge, provenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORMAT = 1  # format of the file; a file in another format is measured again
_SIZE_MAX = 65536
WAITED_MAX = 0.1  # figures are too low if the threads were ready to run, but did not, for a larger share of the time
_TRIES_MAX = 3  # times that `opstrobe run` measures on a busy machine


def cache_path(threads: int, torch_version: str) -> Path:
    """The file for this processor, this number of threads, and this version of torch."""
    key = json.dumps([_FORMAT, provenance.cpu(), threads, torch_version])
    return bridge.cache_directory().parent / "roof" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if len(text) <= _SIZE_MAX else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _cached() -> dict[str, Any] | None:
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_num_threads"):
        return None
    return _read(cache_path(torch.get_num_threads(), str(torch.__version__)))


def _to_json(roof: dict[str, Any]) -> str:
    return json.dumps(roof, separators=(",", ":"))


def cached_json() -> str | None:
    """The measured roof for the program's current settings, as JSON. Never measures."""
    found = _cached()
    return None if found is None else _to_json(found)


def is_wanted() -> bool:
    """Whether to measure for the program's current settings. A roof from a busy machine is measured again a few
    times."""
    found = _cached()
    return found is None or (
        found.get("waited_for_cpu", 0) > WAITED_MAX and found.get("tries", _TRIES_MAX) < _TRIES_MAX
    )


def best_of(roof: dict[str, Any]) -> dict[str, Any]:
    """Combines a roof from a busy machine, whose figures may be too low, with the stored one, and takes the better of each
    figure. Returns other roofs as they are."""
    before = _read(cache_path(roof["threads"], roof["torch"]))
    if before is None or roof["waited_for_cpu"] <= WAITED_MAX:
        return roof
    flops = {name: max(value, before["flops"].get(name, 0)) for name, value in roof["flops"].items()}
    speeds = {size: speed for size, speed in before["bandwidth"]}
    bandwidth = [[size, max(speed, speeds.get(size, 0))] for size, speed in roof["bandwidth"]]
    return {
        **roof,
        "flops": flops,
        "bandwidth": bandwidth,
        "call_us": min(roof["call_us"], before["call_us"]),
        "waited_for_cpu": min(roof["waited_for_cpu"], before.get("waited_for_cpu", 1.0)),
        "tries": before.get("tries", 1) + 1,
    }


def store(roof: dict[str, Any]) -> Path:
    """Stores a roof for future recordings. Raises OSError if the cache cannot be written."""
    path = cache_path(roof["threads"], roof["torch"])
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.new")
    temporary.write_text(json.dumps(roof), "utf-8")
    temporary.replace(path)
    return path
