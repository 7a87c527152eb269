# SPDX-License-Identifier: Apache-2.0
"""The arguments of a kernel, a copy or a collective in a trace, under torch's names."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class EventMetadata(NamedTuple):
    """Each field is None if the trace does not have it."""

    registers_per_thread: int | None = None
    shared_memory: int | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    priority: int | None = None
    blocks_per_sm: float | None = None
    warps_per_sm: float | None = None
    occupancy: dict[str, Any] | None = None
    est_occupancy_pct: float | None = None
    queued: int | None = None
    graph_id: int | None = None
    graph_node_id: int | None = None
    stream: int | None = None
    context: int | None = None
    channel: int | None = None
    channel_type: int | None = None
    bytes: int | None = None
    bandwidth_gb_s: float | None = None
    collective_name: str | None = None
    dtype: str | None = None
    in_msg_nelems: int | None = None
    out_msg_nelems: int | None = None
    in_split_size: Any = None
    out_split_size: Any = None
    global_rank_start: int | None = None
    global_rank_stride: int | None = None
    group_size: int | None = None
    process_group_name: str | None = None
    process_group_desc: str | None = None
    group_ranks: Any = None
    rank: int | None = None
    src_rank: int | None = None
    dst_rank: int | None = None
    seq: int | None = None
    is_async: Any = None


# Names in a trace that are not the field's name with spaces for underscores.
_NAMES = {
    "est_occupancy_pct": "est. achieved occupancy %",
    "bandwidth_gb_s": "memory bandwidth (GB/s)",
    "process_group_desc": "process group description",
    "group_ranks": "process group ranks",
    "is_async": "is asynchronized op",
    "channel_type": "channel_type",
}
_FIELDS = {_NAMES.get(field, field.replace("_", " ")).lower(): field for field in EventMetadata._fields}


def parse_args(members: str) -> dict[str, Any]:
    """Parses the members of a JSON object, without its braces."""
    args: dict[str, Any] = json.loads("{" + members + "}", strict=False)
    return args


def members_of(args: dict[str, Any] | None) -> str:
    """The reverse; an empty text for None."""
    return "" if args is None else json.dumps(args, ensure_ascii=False)[1:-1]


def of_args(args: dict[str, Any]) -> EventMetadata:
    """Converts from the names in the trace."""
    return EventMetadata(**{_FIELDS[name.lower()]: value for name, value in args.items() if name.lower() in _FIELDS})
