# SPDX-License-Identifier: Apache-2.0
"""The routes of the former TensorBoard plugin for PyTorch's traces, for programs that request them. The replies contain
the figures of our views; docs/views.md explains where these differ."""

from __future__ import annotations

import gzip
import html
import json
import pathlib
import zlib
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from opstrobe._server import Reply

Get = Callable[[str], Reply]
Arguments = Mapping[str, str]
Answer = Callable[[Get, Arguments], Any]
Json = dict[str, Any]

# What clients of the former plugin expect for kernels without an operator, and for nodes of a diff without one event.
_FORMER_NAMES = {"(no operator)": "CallTreeRoot", "(several)": "CompositeNodes", "(none)": "Blank"}


class RequestError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# --- which trace ------------------------------------------------------------------------------------------------------


def asked(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if value is None:
        raise RequestError(400, f"parameter '{name}' is missing")
    return value


def json_of(get: Get, target: str) -> Any:
    reply = get(target)
    if reply.status != 200:
        raise RequestError(reply.status, json.loads(reply.body)["error"]["message"])
    return json.loads(reply.body)


def _traces(get: Get) -> list[Json]:
    return [trace for trace in json_of(get, "/api/v1/traces")["traces"] if trace["state"] != "failed"]


def traces_of_run(get: Get, arguments: Arguments) -> list[Json]:
    run = asked(arguments, "run")
    traces = [trace for trace in _traces(get) if trace["run"] == run]
    if not traces:
        raise RequestError(404, f"run '{run}' does not exist")
    return traces


def span_of(trace: Json) -> str:
    return "" if trace["span"] is None else str(trace["span"])


def trace_of(get: Get, arguments: Arguments) -> Json:
    worker, span = asked(arguments, "worker"), arguments.get("span", "")
    for trace in traces_of_run(get, arguments):
        if trace["worker"] == worker and span in ("", span_of(trace)):
            return trace
    raise RequestError(404, f"worker '{worker}' has no trace")


def former_name(name: str) -> str:
    return _FORMER_NAMES.get(name, name)


def _views(get: Get, arguments: Arguments, *parts: str) -> Json:
    trace = trace_of(get, arguments)
    views: Json = json_of(get, f"/api/v1/traces/{trace['id']}/views?parts={quote(','.join(parts))}")
    return views


# --- what there is ----------------------------------------------------------------------------------------------------


def _runs(get: Get, arguments: Arguments) -> Json:
    return {"runs": sorted({trace["run"] for trace in _traces(get)}), "loading": False}


def _views_of(get: Get, trace: Json) -> list[str]:
    names: list[str] = json_of(get, f"/api/v1/traces/{trace['id']}/views?parts=views")["views"]
    return names


def _run_views(get: Get, arguments: Arguments) -> list[str]:
    # Uses the views of the first worker, since reading all traces of a run for those of others is not worthwhile.
    return _views_of(get, traces_of_run(get, arguments)[0])


def _workers(get: Get, arguments: Arguments) -> list[str]:
    if arguments.get("view") == "Distributed":
        return ["All"]
    return sorted({trace["worker"] for trace in traces_of_run(get, arguments)})


def _spans(get: Get, arguments: Arguments) -> list[str]:
    # As in the list: by number, so that 2 comes before 10.
    worker = asked(arguments, "worker")
    return [span_of(trace) for trace in traces_of_run(get, arguments) if trace["worker"] == worker]


# --- overview ---------------------------------------------------------------------------------------------------------

_CATEGORIES = {
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "communication": "Communication",
    "runtime": "Runtime",
    "dataloader": "DataLoader",
    "cpu_exec": "CPU Exec",
    "other": "Other",
}


def _shown_categories(views: Json) -> list[str]:
    device = views["flags"]["has_kernel"] or views["flags"]["has_memcpy_or_memset"] or views["flags"]["has_runtime"]
    shown = {name: device for name in ("kernel", "memcpy", "memset", "runtime")}
    shown["communication"] = views["flags"]["has_communication"]
    return [name for name in _CATEGORIES if shown.get(name, True)]


def _overview(get: Get, arguments: Arguments) -> Json:
    trace = trace_of(get, arguments)
    views = json_of(get, f"/api/v1/traces/{trace['id']}/views?parts=flags,steps,gpus")
    advice = json_of(get, f"/api/v1/traces/{trace['id']}/advice")
    names = _shown_categories(views)
    steps = views["steps"]
    columns = [{"type": "string", "name": "Step"}] + [{"type": "number", "name": _CATEGORIES[name]} for name in names]
    average, percent = steps["average"], steps["average_pct"]
    return {
        "steps": {
            "columns": columns,
            "rows": [[row["name"], *(round(row[name]) for name in names)] for row in steps["rows"]],
        },
        "performance": [
            {
                "name": "Average Step Time",
                "description": "",
                "value": round(average["total"]),
                "extra": 100,
                "children": [
                    {
                        "name": _CATEGORIES[name],
                        "description": "",
                        "value": round(average[name]),
                        "extra": percent[name],
                    }
                    for name in names
                ],
            }
        ],
        "recommendations": _recommendations(advice["findings"]),
        "environments": [
            {"title": "Number of Worker(s)", "value": str(len(_workers(get, arguments)))},
            {"title": "Device Type", "value": "GPU" if "kernel" in names else "CPU"},
        ],
        "gpu_metrics": _gpu_metrics(views["gpus"]),
    }


def _recommendations(findings: list[Json]) -> str:
    items = (f"<li>{html.escape(each['title'])}: {html.escape(each['advice'])}</li>" for each in findings)
    return f"<ul>{''.join(items) or '<li>N/A</li>'}</ul>"


_GPU_METRICS = {
    "utilization_ratio": ("GPU Utilization", 100),
    "est_sm_efficiency_ratio": ("Est. SM Efficiency", 100),
    "est_achieved_occupancy_pct": ("Est. Achieved Occupancy", 1),
    "tensor_core_time_ratio": ("Kernel Time using Tensor Cores", 100),
}


def _gpu_metrics(gpus: list[Json]) -> Json | None:
    if not gpus:
        return None
    data = [
        {"title": f"GPU {gpu['id']}: {title}", "value": f"{gpu[name] * scale:.2f} %"}
        for gpu in gpus
        for name, (title, scale) in _GPU_METRICS.items()
        if gpu.get(name) is not None
    ]
    return {"title": "GPU Summary", "data": data, "tooltip": ""}


# --- operators and kernels --------------------------------------------------------------------------------------------


def _pie(title: str, rows: list[Json], name: str, value: str) -> Json | None:
    slices = sorted(((row[name], round(row[value])) for row in rows if row[value] > 0), key=lambda each: -each[1])
    columns = [{"type": "string", "name": "name"}, {"type": "number", "name": "value"}]
    return {"title": title, "columns": columns, "rows": slices} if slices else None


def _operator_rows(get: Get, arguments: Arguments) -> list[Json]:
    by_shape = arguments.get("group_by", "Operation") == "OperationAndInputShape"
    part = "operators_by_input_shape" if by_shape else "operators"
    found = _views(get, arguments, part)[part]
    rows: list[Json] = found["rows"]
    return rows


def _operation(get: Get, arguments: Arguments) -> Json:
    rows = _operator_rows(get, arguments)
    return {
        "device_self_time": _pie("Device Self Time (us)", rows, "name", "device_self"),
        "device_total_time": _pie("Device Total Time (us)", rows, "name", "device_total"),
        "host_self_time": _pie("Host Self Time (us)", rows, "name", "host_self"),
        "host_total_time": _pie("Host Total Time (us)", rows, "name", "host_total"),
    }


def _operation_table(get: Get, arguments: Arguments) -> Json:
    stacks = _views(get, arguments, "python_stacks", "flags")
    has_device = stacks["flags"]["has_kernel"] or stacks["flags"]["has_memcpy_or_memset"]
    with_stack = stacks["python_stacks"]["per_operator"]
    data = [_operation_row(row, has_device, row["name"] in with_stack) for row in _operator_rows(get, arguments)]
    sort = "device_self_duration" if has_device else "host_self_duration"
    return {"metadata": {"sort": sort, "tooltips": {}}, "data": data}


def _operation_row(row: Json, has_device: bool, has_stack: bool) -> Json:
    shape = {"input_shape": row["input_shape"]} if "input_shape" in row else {}
    device = {"device_self_duration": round(row["device_self"]), "device_total_duration": round(row["device_total"])}
    return {
        "name": row["name"],
        **shape,
        "calls": row["calls"],
        **(device if has_device else {}),
        "host_self_duration": round(row["host_self"]),
        "host_total_duration": round(row["host_total"]),
        "tc_eligible": "Yes" if row["tc_eligible"] else "No",
        "tc_self_ratio": row["tc_self_pct"],
        "tc_total_ratio": row["tc_total_pct"],
        "has_call_stack": has_stack,
    }


def _kernel(get: Get, arguments: Arguments) -> Json:
    return {"total": _pie("Total Time (us)", _views(get, arguments, "kernels")["kernels"]["rows"], "name", "total")}


def _kernel_tc_pie(get: Get, arguments: Arguments) -> Json:
    rows = _views(get, arguments, "kernels")["kernels"]["rows"]
    sums = {used: sum(row["total"] for row in rows if bool(row["tensor_cores"]) is used) for used in (True, False)}
    shares = [
        {"name": "Using Tensor Cores", "total": sums[True]},
        {"name": "Not Using Tensor Cores", "total": sums[False]},
    ]
    return {"total": _pie("Tensor Cores Utilization", shares, "name", "total")}


_KERNEL_COLUMNS = {
    "name": ("string", "Name"),
    "op_name": ("string", "Operator"),
    "operator": ("string", "Operator"),
    "grid": ("string", "Grid"),
    "block": ("string", "Block"),
    "registers": ("number", "Register Per Thread"),
    "shared_memory": ("number", "Shared Memory"),
    "tensor_cores": ("string", "Tensor Cores Used"),
    "calls": ("number", "Calls"),
    "total": ("number", "Total Duration (us)"),
    "mean": ("number", "Mean Duration (us)"),
    "max": ("number", "Max Duration (us)"),
    "min": ("number", "Min Duration (us)"),
    "mean_blocks_per_sm": ("number", "Mean Blocks Per SM"),
    "mean_est_occupancy_pct": ("number", "Mean Est. Achieved Occupancy (%)"),
}


def _kernel_table(get: Get, arguments: Arguments) -> Json:
    by_operator = arguments.get("group_by", "Kernel") == "KernelNameAndOpName"
    part = "kernels_by_op" if by_operator else "kernels"
    found = _views(get, arguments, part)[part]
    rows = found["rows"]
    members = [name for name in _KERNEL_COLUMNS if rows and name in rows[0]]
    columns = [{"type": _KERNEL_COLUMNS[name][0], "name": _KERNEL_COLUMNS[name][1]} for name in members]
    cells = [[_kernel_cell(row[name]) for name in members] for row in rows]
    return {"metadata": {"sort": "Total Duration (us)"}, "data": {"columns": columns, "rows": cells}}


def _kernel_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return former_name(value) if isinstance(value, str) else value


# --- memory -----------------------------------------------------------------------------------------------------------

_TIMES = {"us": 1e3, "ms": 1e6, "s": 1e9}
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}

_MEMORY_COLUMNS = {
    "name": "Operator Name",
    "calls": "Calls",
    "increase": "Size Increase",
    "self_increase": "Self Size Increase",
    "alloc_count": "Allocation Count",
    "self_alloc_count": "Self Allocation Count",
    "alloc_size": "Allocation Size",
    "self_alloc_size": "Self Allocation Size",
}


def _memory(get: Get, arguments: Arguments) -> Json:
    unit = arguments.get("memory_metric", "KB")
    scale = _UNITS.get(unit)
    if scale is None:
        raise RequestError(400, f"unknown unit '{unit}'")
    memory = _views(get, arguments, "memory")["memory"]
    if memory is None:
        raise RequestError(404, "the trace has no records of memory")
    columns = [
        {"type": "string" if name == "name" else "number", "name": f"{title} ({unit})" if "Size" in title else title}
        for name, title in _MEMORY_COLUMNS.items()
    ]
    rows = {
        device: [
            [row[name] / scale if "Size" in title else row[name] for name, title in _MEMORY_COLUMNS.items()]
            for row in statistics
        ]
        for device, statistics in memory["stats"]["rows"].items()
    }
    return {
        "metadata": {
            "title": "Memory View",
            "default_device": memory["stats"]["default_device"],
            "sort": f"Self Size Increase ({unit})",
        },
        "columns": columns,
        "rows": rows,
    }


def _memory_curve(get: Get, arguments: Arguments) -> Json:
    """At most 10,000 points per device; of each range between two of them, the point at which most is held."""
    unit, time_unit = arguments.get("memory_metric", "MB"), arguments.get("time_metric", "ms")
    scale, time_scale = _UNITS.get(unit), _TIMES.get(time_unit)
    if scale is None or time_scale is None:
        raise RequestError(400, f"unknown unit '{unit if scale is None else time_unit}'")
    base = f"/api/v1/traces/{trace_of(get, arguments)['id']}"
    views = json_of(get, f"{base}/views?parts=memory,profiler_start_ts")
    memory = views["memory"]
    if memory is None or not memory["curve"]["devices"]:
        raise RequestError(404, "the trace has no curve of memory")
    rows = {}
    for each in json_of(get, f"{base}/memory")["devices"]:
        name = each["device"].upper().replace("CUDA", "GPU").replace(":", "")
        curve = json_of(get, f"{base}/memory/curve?device={quote(each['device'])}&points=10000")
        if name in memory["curve"]["devices"] and curve["allocated"] is not None:
            reserved = curve["reserved"] or [0] * len(curve["time_ns"])
            rows[name] = [
                [time / time_scale, (held or 0) / scale, (kept or 0) / scale]
                for time, held, kept in zip(curve["time_ns"], curve["allocated"], reserved)
            ]
    return {
        "metadata": {
            "default_device": memory["curve"]["default_device"],
            "devices": list(rows),
            "peaks": {name: memory["curve"]["peak_text"][name] for name in rows},
            "totals": dict.fromkeys(rows),
            "first_ts": views["profiler_start_ts"],
            "time_metric": time_unit,
            "memory_metric": unit,
            "time_factor": 1000 / time_scale,
            "memory_factor": scale,
        },
        "columns": [
            {"name": f"Time ({time_unit})", "type": "number"},
            {"name": f"Allocated ({unit})", "type": "number"},
            {"name": f"Reserved ({unit})", "type": "number"},
        ],
        "rows": rows,
    }


# --- modules, and the trace itself ------------------------------------------------------------------------------------

_MODULE_COLUMNS = {
    "name": ("name", "Module Name"),
    "occurrences": ("occurences", "Occurences"),
    "operators": ("operators", "Operators"),
    "host_total": ("host_duration", "Host Total Time (us)"),
    "host_self": ("self_host_duration", "Host Self Time (us)"),
    "device_total": ("device_duration", "Device Total Time (us)"),
    "device_self": ("self_device_duration", "Device Self Time (us)"),
    "avg_duration": ("avg_duration", "Average Time (us)"),
}


def _module(get: Get, arguments: Arguments) -> Json:
    modules = _views(get, arguments, "modules")["modules"]
    if not modules:
        raise RequestError(404, "the trace has no calls of modules")
    columns = [
        {"key": key, "name": title, "type": "string" if name == "name" else "number"}
        for name, (key, title) in _MODULE_COLUMNS.items()
    ]
    return {"columns": columns, "data": [_module_row(row) for row in modules]}


def _module_row(row: Json) -> Json:
    figures = {key: row[name] if name == "name" else round(row[name]) for name, (key, _) in _MODULE_COLUMNS.items()}
    return {**figures, "id": row["module_id"], "children": [_module_row(child) for child in row["children"]]}


def _trace_file(get: Get, arguments: Arguments) -> Reply:
    path = pathlib.Path(trace_of(get, arguments)["path"])
    if path.suffix == ".zst":
        raise RequestError(404, "the file is packed in a way that pages do not unpack")
    try:
        data = path.read_bytes()
        return Reply(200, "application/json", gzip.decompress(data) if path.suffix == ".gz" else data)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(404, "the file cannot be read any more") from error


ROUTES: dict[str, Answer] = {
    "/runs": _runs,
    "/views": _run_views,
    "/workers": _workers,
    "/spans": _spans,
    "/overview": _overview,
    "/operation": _operation,
    "/operation/table": _operation_table,
    "/kernel": _kernel,
    "/kernel/tc_pie": _kernel_tc_pie,
    "/kernel/table": _kernel_table,
    "/memory": _memory,
    "/memory_curve": _memory_curve,
    "/module": _module,
    "/trace": _trace_file,
}
