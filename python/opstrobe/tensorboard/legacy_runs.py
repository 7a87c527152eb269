# SPDX-License-Identifier: Apache-2.0
"""Legacy plugin routes about several traces: the ranks of a run, and the comparison of two traces."""

from __future__ import annotations

from urllib.parse import quote

from opstrobe.tensorboard.legacy_routes import (
    ROUTES,
    Answer,
    Arguments,
    Get,
    Json,
    RequestError,
    asked,
    former_name,
    json_of,
    span_of,
    trace_of,
    traces_of_run,
)

# --- the ranks of a run -----------------------------------------------------------------------------------------------


def _ranks(get: Get, arguments: Arguments) -> list[Json]:
    """The traces of one window: the requested one, else the first."""
    traces = traces_of_run(get, arguments)
    span = arguments.get("span") or span_of(min(traces, key=lambda trace: trace["span"] or 0))
    return [trace for trace in traces if span_of(trace) == span]


def _distributed(get: Get, arguments: Arguments) -> Json:
    ids = ",".join(trace["id"] for trace in _ranks(get, arguments))
    found = json_of(get, f"/api/v1/traces/{ids}/distributed") if ids else None
    if not found or not found["shown"]:
        raise RequestError(404, "the workers of this run do not all communicate, and as often")
    shown: Json = found
    return shown


def _bars(title: str, legends: dict[str, str], steps: Json) -> Json:
    data = {
        step: {worker: [figures[name] for name in legends] for worker, figures in workers.items()}
        for step, workers in steps.items()
    }
    return {"metadata": {"title": title, "legends": list(legends.values()), "units": "us"}, "data": data}


_OVERLAP = {
    "computation_only": "Computation",
    "overlap": "Overlapping",
    "communication_only": "Communication",
    "other": "Other",
}


def _overlap(get: Get, arguments: Arguments) -> Json:
    return _bars("Computation/Communication Overview", _OVERLAP, _distributed(get, arguments)["overlap"])


_WAIT = {"data_transfer": "Data Transfer Time", "synchronizing": "Synchronizing Time"}


def _wait(get: Get, arguments: Arguments) -> Json:
    return _bars("Synchronizing/Communication Overview", _WAIT, _distributed(get, arguments)["wait"])


_OPERATION_COLUMNS = {
    "name": "Name",
    "calls": "Calls",
    "total_bytes": "Total Size (bytes)",
    "avg_bytes": "Avg Size (bytes)",
    "total_latency": "Total Latency (us)",
    "avg_latency": "Avg Latency (us)",
    "data_transfer": "Data Transfer Time (us)",
    "avg_data_transfer": "Avg Data Transfer Time (us)",
}


def _operations(get: Get, arguments: Arguments) -> Json:
    columns = [
        {"type": "string" if name == "name" else "number", "name": title} for name, title in _OPERATION_COLUMNS.items()
    ]
    data = {
        worker: {"columns": columns, "rows": [[row[name] or 0 for name in _OPERATION_COLUMNS] for row in rows]}
        for worker, rows in _distributed(get, arguments)["ops"].items()
    }
    return {"metadata": {"title": "Communication Operations Stats"}, "data": data}


def _gpus(get: Get, arguments: Arguments) -> Json:
    """By node and process, from names of workers: NODE_PROCESS."""
    data: dict[str, dict[str, Json]] = {}
    for trace in _ranks(get, arguments):
        views = json_of(get, f"/api/v1/traces/{trace['id']}/views?parts=flags,devices")
        node, _, process = trace["worker"].rpartition("_")
        gpus = {
            f"GPU{each['id']}": _gpu(each) for each in views["devices"] if each["id"] in views["flags"]["used_devices"]
        }
        if gpus:
            data.setdefault(node or trace["worker"], {})[f"Process {process}"] = gpus
    return {"metadata": {"title": "Device Information"}, "data": data}


def _gpu(device: Json) -> Json:
    return {
        "Name": device["name"],
        "Memory": f"{device['total_memory'] / (1 << 30):.2f} GB",
        "Memory Raw": device["total_memory"],
        "Compute Capability": device["compute_capability"],
    }


# --- two traces compared -----------------------------------------------------------------------------------------------


def _diff(get: Get, arguments: Arguments) -> Json:
    """The first level of the tree, and the operators of the complete tree."""
    base = trace_of(get, arguments)
    other = {"run": asked(arguments, "exp_run"), "worker": asked(arguments, "exp_worker")}
    experiment = trace_of(get, {**other, "span": arguments.get("exp_span", "")})
    found = json_of(get, f"/api/v1/traces/{experiment['id']}/diff?base={quote(base['id'])}")
    if found["root"] is None:
        raise RequestError(404, "there is nothing to compare")
    children = [{**_node(child), "path": child["path"], "children": []} for child in found["children"]]
    return {**_node(found["root"], found["root_operators"]), "path": "0", "children": children}


def _node(node: Json, operators: list[Json] | None = None) -> Json:
    return {side: _side(node[side], side, operators or []) for side in ("left", "right")}


def _side(figures: Json, side: str, operators: list[Json]) -> Json:
    return {
        "name": former_name(figures["name"]),
        "duration": round(figures["host_duration"]),
        "device_duration": round(figures["device_duration"]),
        "total_duration": round(figures["total_duration"]),
        "aggs": [_aggregate(row["name"], row[side]) for row in operators if row[side]],
    }


def _aggregate(name: str, figures: Json) -> Json:
    return {
        "name": name,
        "calls": figures["calls"],
        "host_duration": round(figures["host_total"]),
        "device_duration": round(figures["device_total"]),
        "self_host_duration": round(figures["host_self"]),
        "self_device_duration": round(figures["device_self"]),
    }


ALL_ROUTES: dict[str, Answer] = {
    **ROUTES,
    "/distributed/gpuinfo": _gpus,
    "/distributed/overlap": _overlap,
    "/distributed/waittime": _wait,
    "/distributed/commops": _operations,
    "/diff": _diff,
}
