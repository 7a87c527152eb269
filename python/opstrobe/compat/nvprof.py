# SPDX-License-Identifier: Apache-2.0
"""Files of NVIDIA's nvprof: a SQLite database with the ranges that emit_nvtx pushed, and the kernels launched in
them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from typing import Any

from opstrobe import _core

_RANGES = """
    SELECT push.id AS id, text.value AS name, push.timestamp AS start, pop.timestamp AS stop
    FROM CUPTI_ACTIVITY_KIND_MARKER AS push
    JOIN CUPTI_ACTIVITY_KIND_MARKER AS pop ON pop.id = push.id AND pop.name = 0
    JOIN StringTable AS text ON text._id_ = push.name
    WHERE push.name != 0 ORDER BY start, stop DESC"""
_KERNELS = """
    SELECT text.value AS name, kernel.start AS start, kernel.end AS stop, call.start AS call_start, call.end AS call_stop,
        kernel.correlationId AS correlation
    FROM CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call ON call.correlationId = kernel.correlationId
    JOIN StringTable AS text ON text._id_ = kernel.name
    ORDER BY start"""


def _slice(category: str, name: str, start_ns: int, stop_ns: int, tid: int, **args: Any) -> dict[str, Any]:
    times = {"ts": start_ns / 1000, "dur": max(stop_ns - start_ns, 0) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, **times, "args": args}


def _rows(database: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    seen = set()
    for row in database.execute(_RANGES):
        if row["id"] in seen:
            raise RuntimeError(f"duplicate key: {row['id']}")
        seen.add(row["id"])
        yield _slice("cpu_op", row["name"], row["start"], row["stop"], 0)
    for row in database.execute(_KERNELS):
        links = {"correlation": row["correlation"]}
        yield _slice("cuda_runtime", "cudaLaunchKernel", row["call_start"], row["call_stop"], 0, **links)
        yield _slice("kernel", row["name"], row["start"], row["stop"], 7, device=0, stream=7, **links)


def parse_nvprof_trace(path: str | os.PathLike[str]) -> _core.EventList:
    """The ranges and kernels of the file. Raises sqlite3.OperationalError if it is missing or not a file of nvprof."""
    database = sqlite3.connect(f"file:{os.fspath(path)}?mode=ro", uri=True)
    try:
        database.row_factory = sqlite3.Row
        rows = list(_rows(database))
    finally:
        database.close()
    return _core.parse_trace(json.dumps({"traceEvents": rows}).encode()).function_events(use_device="cuda")
