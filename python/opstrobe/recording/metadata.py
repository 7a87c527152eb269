# SPDX-License-Identifier: Apache-2.0
"""Metadata of a trace: a map from keys to JSON texts."""

from __future__ import annotations

import json
import os
import sys

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Keys that the trace file reserves for itself and would drop: write/chrome_json.c.
_RESERVED = frozenset(
    {"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName", "opstrobe"}
)
_JOB_VARIABLES = ("PT_PROFILER_JOB_NAME", "PT_PROFILER_JOB_VERSION", "PT_PROFILER_JOB_ATTEMPT_INDEX")


def _check_text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"metadata {what} must be str, not {type(value).__name__}")
    return value


def _check_key(key: Any) -> str:
    text = _check_text("key", key)
    if text in _RESERVED:
        raise ValueError(f"metadata '{text}': the trace file has a key of this name itself")
    return text


def check_json(key: Any, value: Any) -> str:
    """Returns `value` if it is one JSON value. Raises ValueError with the byte position if it is not."""
    text = _check_text("value", value)
    _core.Trace.check_metadata(_check_key(key), text)
    return text


def json_of_text(key: Any, value: Any) -> str:
    """Returns the text `value` as JSON. Lone surrogates are spelled out, as in names, since strict readers reject a
    file with one."""
    _check_key(key)
    return json.dumps(_check_text("value", value).encode("utf-8", "backslashreplace").decode())


def of_environment() -> dict[str, str]:
    """Information about this process in the environment: the job, and its place among distributed processes."""
    found = {name: json.dumps(os.environ[name]) for name in _JOB_VARIABLES if os.environ.get(name)}
    info = distributed_info() or _rank_of_environment()
    if info:
        found["distributedInfo"] = json.dumps(info)
        if job := _job_of_environment():
            found["job"] = json.dumps(job)
    return found


def _job_of_environment() -> str | None:
    """Distinguishes this job from others that run at the same time: torchrun's run id, unless it has its default value,
    or Slurm's."""
    run = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    if run not in ("", "none"):
        return run
    return ".".join(filter(None, (os.environ.get(name) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")))) or None


def _rank_of_environment() -> dict[str, Any] | None:
    """The rank that torchrun gave this process, for when torch.distributed is not initialised yet, or no longer, or
    never."""
    rank, world_size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    if not (rank.isascii() and rank.isdecimal() and world_size.isascii() and world_size.isdecimal()):
        return None
    return {"rank": int(rank), "world_size": int(world_size)}


def distributed_info() -> dict[str, Any] | None:
    """Backend, rank and process groups; None unless torch.distributed is initialised."""
    dist: Any = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    c10d, backend = dist.distributed_c10d, dist.get_backend()
    info = {
        "backend": backend,
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "pg_count": dist.get_pg_count() if hasattr(dist, "get_pg_count") else c10d.get_pg_count(),
        "pg_config": c10d._get_all_pg_configs(),
    }
    if backend == "nccl":
        info["nccl_version"] = ".".join(map(str, sys.modules["torch"].cuda.nccl.version()))
    return info
