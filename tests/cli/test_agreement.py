# SPDX-License-Identifier: Apache-2.0
"""views, analyze, kernels, modules, lines, memory, diff, advise, table, info, the HTTP interface and Python give the same steps,
classes of work, kernels and their operators, times of modules and peaks of memory for one trace, and text and Markdown show the
figures of the JSON. By hand-made traces, those of the repository, and the shared ones next to it."""

import collections
import csv
import io
import json
import os
import pathlib
import re

import pages
import pytest

import opstrobe

try:
    import duckdb
    import pyarrow  # noqa: F401
except ImportError:
    duckdb = None

ROOT = pathlib.Path(__file__).resolve().parents[2]

FOLDER = pathlib.Path(os.environ.get("OPSTROBE_TRACES", ROOT.parent / "shared" / "traces"))
SHARED = sorted(
    [path for path in FOLDER.glob("**/*.json.gz") if path.name != "et.json.gz"] + [*FOLDER.parent.glob("repro/*.json")]
)


def row(name, ts, dur, cat="cpu_op", tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step(name, ts, dur):
    return row(name, ts, dur, "user_annotation")


def call(name, ts, correlation, cat="cuda_runtime", **args):
    return row(name, ts, 5, cat, correlation=correlation, **args)


def kernel(name, ts, dur, correlation, cat="kernel"):
    return {**row(name, ts, dur, cat, 7, correlation=correlation, device=0, stream=7), "pid": 0}


def launched(name, operator, ts, correlation, dur=40, how="cudaLaunchKernel"):
    return [row(operator, ts, 20), call(how, ts + 5, correlation), kernel(name, 10 * ts, dur, correlation)]


ALL_REDUCE = "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)"


def replayed(name, ts, correlation, node):
    work = kernel(name, ts, 40, correlation)
    return {**work, "args": {**work["args"], "graph id": 5, "graph node id": (5 << 32) + node}}


# name: rows, steps, communication in microseconds, operators by kernel
TRACES = {
    "steps with a space": (
        [step("ProfilerStep #1", 0, 100), step("ProfilerStep #2", 100, 100), *launched("k", "aten::a", 10, 1)],
        ["1", "2"], 0, {"k": "aten::a"},
    ),
    "no steps": ([step("ProfilerStep#last", 0, 100), *launched("k", "aten::a", 10, 1)], [], 0, {"k": "aten::a"}),
    "communication": (
        [
            step("ProfilerStep#1", 0, 200),
            *launched(ALL_REDUCE, "vllm::all_reduce", 10, 7, 60),
            *launched("gemm", "aten::mm", 50, 8),
        ],
        ["1"], 60, {ALL_REDUCE: "vllm::all_reduce", "gemm": "aten::mm"},
    ),
    "capture and replay": (
        [
            call("cudaStreamBeginCapture", 2, 90),
            row("aten::mm", 10, 20), call("cudaLaunchKernel", 12, 91),
            row("aten::gelu", 40, 20), call("cudaLaunchKernel", 42, 92),
            call("cudaStreamEndCapture", 70, 93),
            step("ProfilerStep#1", 100, 200), call("cudaGraphLaunch", 110, 94),
            replayed("gemm", 120, 94, 0), replayed("gelu_kernel", 170, 94, 1),
        ],
        ["1"], 0, {"gemm": "aten::mm", "gelu_kernel": "aten::gelu"},
    ),
    "two calls of a correlation": (
        [
            row("aten::a", 0, 40), call("cudaLaunchKernel", 10, 7), row("aten::b", 50, 40),
            call("cuLaunchKernel", 60, 7, "cuda_driver"), kernel("k", 100, 60, 7),
        ],
        [], 0, {"k": "aten::a"},
    ),
    "makers": (
        [
            *launched("hip", "aten::a", 10, 1, how="hipModuleLaunchKernel"),
            *launched("driver", "aten::b", 50, 2, how="cuLaunchKernelEx"),
            *launched("graph", "aten::c", 90, 3, how="cudaGraphLaunch"),
        ],
        [], 0, {"hip": "aten::a", "driver": "aten::b", "graph": "aten::c"},
    ),
    "id instead of time": (
        [
            row("outer", 0, 50, **{"External id": 5}), row("inner", 10, 30, **{"External id": 6}),
            call("cudaLaunchKernel", 20, 7, **{"External id": 5}), kernel("k", 100, 60, 7),
        ],
        [], 0, {"k": "outer"},
    ),
    "empty step": ([step("ProfilerStep#4", 0, 0)], ["4"], 0, {}),
}  # fmt: skip


class Command:
    """What the command prints: of JSON the value, else the text."""

    def __init__(self, opstrobe):
        self.opstrobe = opstrobe

    def __call__(self, *words):
        return json.loads(self.text(*words))

    def text(self, *words):
        ended = self.opstrobe(*words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture
def ask(opstrobe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Command(opstrobe)


def steps_of_views(found):
    if found["steps"]["from"] != "marks":
        return []  # analyses count marked steps alone; a trace without any is one step, which is called 0
    return sorted({int(name) for name in found["steps"]["names"] + found["steps"]["left_out_names"]})


def steps_of_analyze(ask, path):
    found = ask("analyze", "profiler_steps", "--format", "json", "--include-last-profiler-step", "true", path)
    return sorted(found["value"])


def table_of(ask, command, *words):
    found = ask(command, "--format", "json", *words)
    found = found.get("table", found)
    return [dict(zip(found["columns"], values, strict=True)) for values in found["rows"]]


def kernels_of_analyze(ask, path, *words):
    return table_of(
        ask, "analyze", "gpu_kernel_breakdown.by_kernel", "--num-kernels", "1000000", "--duration-ratio", "1",
        "--include-last-profiler-step", "true", *words, path,
    )  # fmt: skip


def communication_us(ask, path, *words):
    rows = kernels_of_analyze(ask, path, *words)
    return sum(row["sum (us)"] for row in rows if row["kernel_type"] == "COMMUNICATION")


def modules_of_views(rows, depth=0):
    """Rows of the tree, as the table of modules names its columns."""
    for row in rows or []:
        yield {
            "name": row["name"], "depth": depth, "calls": row["occurrences"], "host_us": row["host_total"],
            "self_host_us": row["host_self_with_operators"], "device_us": row["device_total"],
            "backward_us": row["backward_host_total"], "backward_device_us": row["backward_device_total"],
        }  # fmt: skip
        yield from modules_of_views(row["children"], depth + 1)


def rounded(rows, *names):
    """To the precision of a table: two digits after the point."""
    return sorted(
        tuple(round(row[name], 2) if isinstance(row[name], float) else row[name] for name in names) for row in rows
    )


def device_name(views_name):
    """views names devices as the TensorBoard plugin does: CPU, GPU0, HIP0."""
    kind, number = re.fullmatch(r"([A-Z]+)(\d*)", views_name).groups()
    kind = kind.lower().replace("gpu", "cuda")
    return f"{kind}:{number}" if number else kind


def device_title(name):
    """Text says CPU and GPU 0 where data has torch's name: cpu, cuda:0, hip:0."""
    return "CPU" if name == "cpu" else re.sub("^(cuda|hip|xpu):", "GPU ", name)


def assert_surfaces_agree(ask, path, found):
    """What commands other than views say, next to the views of the trace."""
    everything = ("--limit", "1000000000", path)
    kernels, modules = table_of(ask, "kernels", *everything), table_of(ask, "modules", *everything)
    by_operator = table_of(ask, "kernels", "--by-operator", *everything)
    lines, about = ask("lines", "--format", "json", path), ask("info", "--format", "json", path)["value"]
    base, diff = ask("advise", "--format", "json", path)["base"], ask("diff", "--format", "json", path, path)
    steps, marked = found["steps"], found["steps"]["from"] != "none"

    views = (found["kernels"] or {"rows": []})["rows"]
    assert rounded(views, "name", "calls", "total") == rounded(kernels, "name", "calls", "total_us")
    views = (found["kernels_by_op"] or {"rows": []})["rows"]
    assert rounded(views, "name", "operator", "calls", "total") == rounded(
        by_operator, "name", "operator", "calls", "total_us"
    )

    compared = {row["name"]: row["left"]["per_step"] for row in diff["kernels"]}
    divisor = diff["steps"]["left"]["per_step_divisor"]
    for row, viewed in zip(kernels, (found["kernels"] or {"rows": []})["rows"], strict=True):
        of_step = compared.get(row["name"], {"total": 0, "calls": 0}) if marked else {"total": None, "calls": None}
        assert viewed["step_total"] == pytest.approx(of_step["total"], abs=1e-3)
        assert row["step_us"] == pytest.approx(of_step["total"], abs=2e-3)
        assert row["step_calls"] == pytest.approx(of_step["calls"], abs=0.01)
    for row in modules:  # what is outside of steps counts in none
        assert row["step_us"] is None or row["step_us"] <= (row["host_us"] + row["backward_us"]) / divisor + 2e-3
        assert row["percent"] is None or 0 <= row["percent"] <= 100

    assert about["steps"] == lines["steps"] == len({*steps["names"], *steps["left_out_names"]}) * marked
    if marked:
        assert base["steps"] == len(steps["names"])
    if steps["names"]:
        assert diff["steps"]["left"]["mean"] == pytest.approx(steps["breakdown"]["average"]["total"], abs=1e-3)
        assert base["average_step_ms"] == pytest.approx(steps["breakdown"]["average"]["total"] / 1000, abs=1e-3)
        communication = steps["breakdown"]["average"]["communication"]
        assert diff["steps"]["categories"]["communication"]["left"] == pytest.approx(communication, abs=1e-3)

    columns = ("calls", "host_us", "self_host_us", "device_us", "backward_us", "backward_device_us")
    # The tree of views repeats a module, with all its figures, below each module that calls it.
    assert {*rounded(modules_of_views(found["modules"]), *columns)} == {*rounded(modules, *columns)}
    peaks = {row["device"]: row["bytes"] for row in table_of(ask, "memory", path) if row["held_by"] == "all"}
    assert {row["device"]: row["left"]["peak"] for row in diff["memory"]} == peaks
    for device, bytes in (found["memory"] or {"peaks": {}})["peaks"].items():
        assert peaks.get(device_name(device)) == bytes, device
    assert_pages_agree(ask, path, found, peaks)
    assert_overview_agrees(ask, path, found)
    if duckdb:
        assert_sql_agrees(ask, path, found)


def sql(trace, query):
    """Rows as tuples, in order, with the precision of a table."""
    rows = trace.sql(query).fetchall()
    return sorted(tuple(round(cell, 2) if isinstance(cell, float) else cell for cell in row) for row in rows)


def assert_sql_agrees(ask, path, found):
    trace, everything = opstrobe.read(path), ("--limit", "1000000000", path)
    kernels = "from kernels where work not in ('copy', 'fill') group by all"
    assert sql(trace, f"select name, count(*), sum(dur_ns) / 1e3 {kernels}") == rounded(
        (found["kernels"] or {"rows": []})["rows"], "name", "calls", "total"
    )
    by_category = sql(trace, "select category, count(*), sum(dur_ns) / 1e3 from kernels group by all")
    assert by_category == rounded(
        table_of(ask, "kernels", "--by-category", *everything), "category", "calls", "total_us"
    )
    assert by_category == rounded(found["kernels_by_category"] or [], "category", "calls", "total")
    # Views have a row for each grid, and name what else called a launch where no operator did.
    views = collections.defaultdict(lambda: [0, 0])
    for row in (found["kernels_by_op"] or {"rows": []})["rows"]:
        sums = views[row["name"], row["operator"]]
        sums[0], sums[1] = sums[0] + row["calls"], sums[1] + row["total"]
    query = f"select name, operator, count(*), sum(dur_ns) / 1e3 {kernels} having operator is not null"
    for name, operator, calls, total in sql(trace, query):
        assert views[name, operator] == pytest.approx([calls, total], abs=0.02), name
    ((communication,),) = sql(trace, "select coalesce(sum(dur_ns), 0) / 1e3 from collectives where on_device")
    assert communication == pytest.approx(communication_us(ask, path, "--rules", "opstrobe"), abs=0.05)
    steps = {*found["steps"]["names"], *found["steps"]["left_out_names"]} if found["steps"]["from"] != "none" else set()
    assert {str(step) for (step,) in sql(trace, "select distinct step from steps")} == steps
    times = ("host", "self_host", "backward", "device", "backward_device")
    assert sql(
        trace, f"select module, calls, {', '.join(f'{name}_ns / 1e3' for name in times)} from modules"
    ) == rounded(table_of(ask, "modules", *everything), "path", "calls", *(f"{name}_us" for name in times))
    lines = ask("lines", "--format", "json", path)
    assert sql(trace, "select file, line, calls, host_ns / 1e3, self_ns / 1e3, device_ns / 1e3, allocated_bytes from lines") == sorted(
        (file["file"], line["line"], line["calls"], *(round(line[name], 2) for name in ("host_us", "self_us", "device_us")), line["allocated_bytes"])
        for file in lines["files"] for line in file["lines"]
    )  # fmt: skip
    findings = ask("advise", "--format", "json", path)["findings"]
    assert [
        row for row in trace.sql("select rule, severity, evidence, line, gain_ms from findings").fetchall()
    ] == [
        (each["id"], each["severity"], each["evidence"], (each["where"] or [{"line": None}])[0]["line"], each["predicted_gain_ms_per_step"])
        for each in findings
    ]  # fmt: skip
    about = ask("info", "--format", "json", path)["value"]
    ((events, lost),) = sql(trace, "select events, lost from ranks")
    assert events == sql(trace, "select count(*) from events")[0][0] and lost == about.get("lost", lost)


PARTS = {
    "kernels": "kernel", "memory copies": "memcpy", "memory sets": "memset", "communication": "communication", "runtime calls": "runtime",
    "data loading": "dataloader", "operators": "cpu_exec", "other": "other",
}  # fmt: skip


def assert_row(row, name, figures):
    """A row of a page has this name, and exactly these figures."""
    assert pages.names(row.name, name), (row, name)
    assert len(row.figures) == len(figures), (row, figures)
    for text, figure in zip(row.figures, figures, strict=True):
        assert pages.shows(text, figure), (row, figures)


def assert_list(rows, entries, device, steps):
    """A list of a page is the first entries: name, calls, time on the host, time on the device, total time of all calls, time per
    step. The mean is that of the total. Text leaves mean and time per step out where they do not fit."""
    total = sum(entry[3] if device else entry[2] for entry in entries)
    assert len(rows) == min(10, len(entries))
    for row, (name, calls, host, on_device, of_calls, of_step) in zip(rows, entries, strict=False):
        times = [host, on_device] if device and host is not None else [on_device if device else host]
        more = [of_calls / calls, *([int(1000 * of_step + 0.5) / 1000] if steps > 1 and of_step is not None else [])][
            : len(row.figures) - len(times) - 2
        ]
        assert_row(row, name, [calls, *times, *more, 100 * times[-1] / total if total else 0])


def assert_steps_shown(title, text, steps):
    totals = [row["total"] for row in steps["breakdown"]["rows"]]
    figures = [steps["breakdown"]["average"]["total"]]
    if steps["from"] != "none" and len(totals) > 1:
        assert title.startswith(f"{len(totals)} {'iterations' if steps['from'] == 'iterations' else 'steps'}: ")
        figures = [steps["median"], *figures, steps["p95"], min(totals), max(totals)]
    shown = re.findall(pages.DURATION, title.split(": ", 1)[1])
    shown += [each for pair in re.findall(rf"rom ({pages.DURATION}) to ({pages.DURATION})", text) for each in pair]
    assert len(shown) == len(figures) and all(map(pages.shows, shown, figures)), (title, figures)


def kernels_shown(rows):
    """Rows with the names that pages show: short ones, unless two of the ten rows would have the same."""
    short = collections.Counter(row["short_name"] for row in rows[:10])
    return [
        (row["short_name"] if short[row["short_name"]] == 1 else row["name"].removeprefix("void "), row) for row in rows
    ]


def assert_pages_agree(ask, path, found, peaks):
    """The summary for a terminal and the report in Markdown show the figures of the JSON, rounded."""
    steps, markdown = found["steps"], list(pages.markdown_sections(ask.text("report", "--format", "markdown", path)))
    device = any(row["device_self"] > 0 for row in found["operators"]["rows"])
    as_page = device == (found["flags"]["has_kernel"] or found["flags"]["has_memcpy_or_memset"])
    operators = [
        (
            row["name"],
            row["calls"],
            row["host_self"],
            row["device_self"],
            row["host_total"],
            row["step_self"] if as_page else None,
        )
        for row in found["operators"]["rows"]
    ]
    kernels = [
        (name, row["calls"], None, row["total"], row["total"], row["step_total"])
        for name, row in kernels_shown((found["kernels"] or {"rows": []})["rows"])
    ]
    rows = opstrobe.read(path).module_summary().rows()
    of_device = any(row["self_device_ns"] + row["self_backward_device_ns"] > 0 for row in rows)
    own = ("self_device_ns", "self_backward_device_ns") if of_device else ("self_host_ns", "self_backward_ns")
    whole = ("device_ns", "backward_device_ns") if of_device else ("host_ns", "backward_ns")
    modules = [
        (
            row["path"] or row["class"],
            row["calls"],
            None,
            *(sum(row[key] for key in keys) / 1000 for keys in (own, whole)),
            None,
        )
        for row in rows
    ]
    modules = sorted((module for module in modules if module[3] > 0), key=lambda module: -module[3])
    for page in (list(pages.text_sections(ask.text("views", path))), markdown):
        part = pages.section(
            page,
            "whole recording",
            "1 step:",
            "1 iteration:",
            f"{len(steps['names'])} steps:",
            f"{len(steps['names'])} iterations:",
        )
        if steps["names"]:
            assert_steps_shown(part.title, part.text, steps)
        part, average = pages.section(page, "average step", "parts"), steps["breakdown"]["average"]
        assert {PARTS[row.name] for row in part.rows} == {name for name in PARTS.values() if average[name] > 0}
        for row in part.rows:
            assert_row(row, row.name, [average[PARTS[row.name]], 100 * average[PARTS[row.name]] / average["total"]])
        phases, rows = steps["phases"], pages.section(page, "phases").rows
        assert bool(rows) == bool(phases and phases["average"]["total"] > 0)
        for row in rows:
            name = row.name.replace(" ", "_")
            on_device = [phases["average_device"][name]] if found["flags"]["used_devices"] else []
            share = 100 * phases["average"][name] / phases["average"]["total"]
            assert_row(row, row.name, [phases["average"][name], share, *on_device])
        count = len({*steps["names"], *steps["left_out_names"]}) if steps["from"] != "none" else 0
        count -= steps["apart"] is not None
        assert_list(pages.section(page, "operators").rows, operators, device, count)
        assert_list(pages.section(page, "kernels").rows, kernels, True, count)
        assert_list(pages.section(page, "modules").rows, modules, True, count)
        shown = re.findall(
            r"^(?:\| )?`?([A-Za-z]+(?:[: ]\d+)?)`?(?: \|)? +`?([\d.]+ [KMGT]?i?B)\b",
            pages.section(page, "most memory").text,
            re.MULTILINE,
        )
        titles = {device_title(name): bytes for name, bytes in peaks.items()}
        assert {name for name, _ in shown} == set(titles)
        for name, text in shown:
            assert pages.shows(text, titles[name]), (name, text)


def assert_overview_agrees(ask, path, found):
    """`views` as a table, in CSV and Markdown, rounds the figures of the JSON to nanoseconds."""
    if any("\\x" in row["name"] for row in found["operators"]["rows"]):
        return  # not UTF-8: JSON writes its bytes
    steps = found["steps"]
    is_marked = steps["from"] != "none"
    part = "average step" if is_marked else "whole recording"
    expected = (
        {(part, name): figure for name, figure in steps["breakdown"]["average"].items()} if steps["names"] else {}
    )
    if is_marked:
        expected |= {("step", row["name"]): row["total"] for row in steps["rows"]}
        expected |= {("steps", name): steps[name] for name in ("median", "p95") if steps["names"]}
    expected |= {(each["kind"], name): each[name] for each in steps["kinds"] for name in ("median", "p95")}
    expected |= {
        ("phase", name): figure
        for name, figure in (steps["phases"] or {"average": {}})["average"].items()
        if name != "total"
    }
    expected |= {("operator", row["name"]): row["host_total"] for row in found["operators"]["rows"]}
    expected |= {("kernel", row["name"]): row["total"] for row in (found["kernels"] or {"rows": []})["rows"]}
    table = csv.DictReader(io.StringIO(ask.text("views", "--format", "csv", path), newline=""))
    shown = {(row["view"], row["name"]): float(row["total_us"]) for row in table if row["name"] != "waited_for_cpu"}
    assert shown == {key: pytest.approx(figure, abs=0.000501) for key, figure in expected.items()}
    rows = [line for line in ask.text("views", "--format", "markdown", path).splitlines() if line.startswith("| ")]
    for row in map(pages.markdown_row, rows[1:]):
        assert row.figures


@pytest.mark.parametrize("name", TRACES)
def test_hand_made(ask, tmp_path, name):
    rows, steps, communication, operators = TRACES[name]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    found = ask("views", "--format", "json", "t.json")
    assert steps_of_views(found) == [int(step) for step in steps]
    assert steps_of_analyze(ask, "t.json") == [int(step) for step in steps]
    assert communication_us(ask, "t.json") == communication
    assert sum(step["communication"] for step in found["steps"]["rows"]) == communication
    assert_surfaces_agree(ask, "t.json", found)
    assert {row["name"]: row["operator"] for row in (found["kernels_by_op"] or {"top": []})["top"]} == operators
    table = ask("kernels", "--by-operator", "--format", "json", "t.json")
    table = table.get("table", table)
    columns = [dict(zip(table["columns"], values, strict=True)) for values in table["rows"]]
    assert {row["name"]: row["operator"] for row in columns} == operators
    # The table of operators and the views sum the same work.
    table = ask("table", "--format", "json", "t.json")["table"]
    times = {row["name"]: row["self_device_time_total"] for row in
             (dict(zip(table["columns"], values, strict=True)) for values in table["rows"])}  # fmt: skip
    for row in found["operators"]["rows"]:
        assert times[row["name"]] == row["device_self"], row["name"]


MODULES = [
    step("ProfilerStep#1", 0, 200),
    row("nn.Module: Net_0", 5, 90, "python_function", **{"Python id": 1, "Python module id": 0}),
    row("nn.Module: Linear_0", 10, 40, "python_function", **{"Python id": 2, "Python parent id": 1, "Python module id": 1}),
    *launched("gemm", "aten::mm", 15, 1), *launched("relu", "aten::relu", 60, 2, 20),
    *({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
       "args": {"Device Type": 1, "Device Id": 0, "Addr": addr, "Bytes": size, "Total Allocated": total}}
      for ts, addr, size, total in ((16, 1, 512, 512), (20, 2, 1024, 1536), (70, 1, -512, 1024))),
]  # fmt: skip


def test_modules_and_memory(ask, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": MODULES}))
    found = ask("views", "--format", "json", "t.json")
    assert rounded(modules_of_views(found["modules"]), "name", "host_us", "device_us") == [
        ("Linear_0", 40, 40), ("Net_0", 90, 60),
    ]  # fmt: skip
    assert found["memory"]["peaks"] == {"GPU0": 1536}
    assert_surfaces_agree(ask, "t.json", found)


def test_the_backward_of_a_backward(ask, tmp_path):
    """It works for the module of the node that it is the backward of, in the table of modules and in views."""
    engine = "autograd::engine::evaluate_function: "
    rows = [
        *MODULES[:3], row("aten::mm", 15, 20), row(engine + "MmBackward0", 100, 30, tid=2), row("aten::mm", 105, 20, tid=2),
        row(engine + "MmBackwardBackward0", 140, 12, tid=2),
        *({"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": id, "pid": 1, "tid": tid, "ts": ts, "bp": "e"}
          for id, phase, tid, ts in ((1, "s", 1, 15), (1, "f", 2, 100), (2, "s", 2, 105), (2, "f", 2, 140))),
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    found = ask("views", "--format", "json", "t.json")
    assert rounded(modules_of_views(found["modules"]), "name", "backward_us") == [("Linear_0", 42), ("Net_0", 42)]
    assert_surfaces_agree(ask, "t.json", found)


def memory_record(ts, addr, size, total, device=1):
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
            "args": {"Device Type": device, "Device Id": device - 1, "Addr": addr, "Bytes": size, "Total Allocated": total}}  # fmt: skip


def test_peaks_that_allocators_contradict(ask, tmp_path):
    """The peak is that of what lives. The CPU's allocator counts from the beginning of the recording; here that of the device
    frees 256 bytes that it did not count."""
    rows = [
        step("ProfilerStep#1", 0, 200),
        memory_record(10, 1, 4096, 4096), memory_record(20, 2, 8192, 12288), memory_record(30, 9, -256, 12032),
        memory_record(40, 5, 64, 64, 0), memory_record(50, 6, -1024, 64, 0), memory_record(60, 5, -64, 0, 0),
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    found = ask("views", "--format", "json", "t.json")
    assert found["memory"]["peaks"] == {"CPU": 1088, "GPU0": 12544}
    allocators = {name: device["max_allocated"] for name, device in found["memory"]["curve"]["devices"].items()}
    assert allocators == {"CPU": 64, "GPU0": 12288}
    assert_surfaces_agree(ask, "t.json", found)


def lightning(name, ts, dur, cat):
    return row(f"[pl][module]torch.nn.modules.{name}", ts, dur, cat)


@pytest.mark.parametrize("cat", ["cpu_op", "user_annotation"])
def test_modules_of_lightning(ask, tmp_path, cat):
    """Its ranges are the calls of modules, unlike the Python functions of such a trace."""
    rows = [
        step("ProfilerStep#1", 0, 200),
        lightning("container.Sequential: net", 5, 90, cat), lightning("linear.Linear: net.0", 10, 40, cat),
        row("nn.Module: Linear_0", 11, 38, "python_function", **{"Python id": 2, "Python module id": 1}),
        *launched("gemm", "aten::mm", 15, 1),
        *({"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 1, "tid": 1, "ts": ts, "bp": "e"}
          for phase, ts in (("s", 15), ("f", 102))),
        row("autograd::engine::evaluate_function: MmBackward0", 100, 30), row("MmBackward0", 102, 20),
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"Framework": "pytorch-lightning", "traceEvents": rows}))
    found = ask("views", "--format", "json", "t.json")
    figures = ("name", "host_us", "device_us", "backward_us")
    assert rounded(modules_of_views(found["modules"]), *figures) == [("net", 90, 40, 30), ("net.0", 40, 40, 30)]
    table = table_of(ask, "modules", "t.json")
    assert [(row["path"], row["class"], row["host_us"]) for row in table] == [
        ("net", "Sequential", 90),
        ("net.0", "Linear", 40),
    ]
    assert_surfaces_agree(ask, "t.json", found)


def test_names_of_devices(ask, tmp_path):
    """There is one CPU, whether a file numbers it or not."""
    rows = [
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
         "args": {"Device Type": kind, "Device Id": id, "Addr": ts, "Bytes": size, "Total Allocated": total}}
        for ts, kind, id, size, total in ((1, 0, 0, 8, 8), (2, 0, -1, 16, 24), (3, 6, 1, 64, 64), (4, 1, 0, 32, 32))
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [step("ProfilerStep#1", 0, 9), *rows]}))
    found = ask("views", "--format", "json", "t.json")
    assert found["memory"]["peaks"] == {"CPU": 24, "GPU0": 32, "HIP1": 64}
    assert_surfaces_agree(ask, "t.json", found)
    peaks = {row["device"]: row["bytes"] for row in table_of(ask, "memory", "t.json") if row["held_by"] == "all"}
    assert peaks == {"cpu": 24, "cuda:0": 32, "hip:1": 64}


@pytest.mark.parametrize("name", ["communication", "two calls of a correlation", "no steps"])
def test_python(ask, tmp_path, name):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": TRACES[name][0]}))
    trace = opstrobe.read(tmp_path / "t.json")
    found = ask("views", "--format", "json", "t.json")
    assert trace.views() == {key: value for key, value in found.items() if key in trace.views()}
    assert [event.name for event in trace.events() if event.device_type.name == "CUDA"] == [
        row["name"] for row in TRACES[name][0] if row["cat"] == "kernel"
    ]


# Two steps; a kernel of torch's symmetric memory, one whose launch is unknown, and an operator with the stream it launches on.
UNKNOWN = [
    step("ProfilerStep#1", 0, 500), step("ProfilerStep#2", 500, 500), *launched(ALL_REDUCE, "vllm::all_reduce", 10, 7, 60),
    row("triton_poi", 50, 20, stream=7), call("cuLaunchKernel", 55, 8), kernel("triton_poi", 400, 8, 8), kernel("alone", 450, 9, 99),
]  # fmt: skip


def test_rules(ask, opstrobe, tmp_path):
    """Holistic Trace Analysis goes by names and by the argument `stream`, and leaves out work without a launch."""
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": UNKNOWN}))
    found = ask("views", "--format", "json", "t.json")
    ours = kernels_of_analyze(ask, "t.json")
    assert {row["name"]: row["total"] for row in found["kernels"]["rows"]} == {
        row["name"]: row["sum (us)"] for row in ours
    }
    assert ours == kernels_of_analyze(ask, "t.json", "--rules", "opstrobe")
    assert communication_us(ask, "t.json") == 60
    theirs = {row["name"]: row for row in kernels_of_analyze(ask, "t.json", "--rules", "hta")}
    assert {name: row["sum (us)"] for name, row in theirs.items()} == {ALL_REDUCE: 60, "triton_poi": 28}
    assert theirs[ALL_REDUCE]["kernel_type"] == "COMPUTATION"
    for words in (["analyze", "temporal_breakdown"], ["views"], ["diff", "t.json"]):
        ended = opstrobe(*words, "--rules", "plugin", "t.json")
        assert ended.returncode == 2 and "choose from opstrobe, tensorboard, hta" in ended.stderr


def identified(event, number):
    return {**event, "args": {**event["args"], "External id": number}}


# A collective whose kernel has its id, a launch whose id no operator has, a call of the driver, and a kernel of a collective
# outside of one.
RULED = [
    step("ProfilerStep#1", 0, 500), identified(row("nccl:all_reduce", 10, 20, "user_annotation"), 5), identified(call("cudaLaunchKernel", 12, 1), 5),
    identified(kernel("ncclDevKernel", 100, 30, 1), 5),
    identified(row("aten::a", 40, 10), 6), identified(call("cudaLaunchKernel", 42, 2), 99), kernel("k", 140, 8, 2),
    identified(row("aten::b", 60, 10), 7), identified(call("cuLaunchKernel", 62, 3, "cuda_driver"), 7), kernel("d", 150, 4, 3),
    call("cudaLaunchKernel", 80, 4), kernel("ncclKernel_Alone", 160, 9, 4),
]  # fmt: skip


@pytest.mark.parametrize("rules, communication", [("opstrobe", 39), ("tensorboard", 30), ("hta", 39)])
def test_rules_hold_on_all_surfaces(ask, tmp_path, rules, communication):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": RULED}))
    views = ask("views", "--rules", rules, "--format", "json", "t.json")
    assert communication_us(ask, "t.json", "--rules", rules) == communication
    (row,) = views["steps"]["breakdown"]["rows"]
    # By the plugin's rules the host's call communicates, too.
    assert row["communication"] == communication + (20 if rules == "tensorboard" else 0)
    pairs = {(row["name"], row["operator"]) for row in views["kernels_by_op"]["top"]}
    assert (("k", "aten::a") in pairs) == (rules != "tensorboard")
    assert (("d", "aten::b") in pairs) == (rules != "tensorboard")
    changes = ask("diff", "--rules", rules, "--format", "json", "t.json", "t.json")
    assert changes["steps"]["categories"]["communication"]["left"] == row["communication"]


def test_the_step_left_out_is_named(ask, opstrobe, tmp_path):
    rows = [step(f"ProfilerStep#{i}", 100 * i, 100) for i in (3, 4)] + launched("k", "aten::a", 310, 1)
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    id = "gpu_kernel_breakdown.by_kernel"
    assert ask("analyze", id, "--format", "json", "t.json")["left_out_step"] == 4
    assert "without step 4" in opstrobe("analyze", id, "t.json").stdout
    keep = ("--include-last-profiler-step", "true")
    assert "left_out_step" not in ask("analyze", id, "--format", "json", *keep, "t.json")
    assert "without step" not in opstrobe("analyze", id, *keep, "t.json").stdout
    assert "without step" not in opstrobe("analyze", id, "--format", "csv", "t.json").stdout


def test_a_device_without_kernels_has_no_rows(opstrobe, tmp_path):
    """MTIA has jobs instead of kernels. They are device time in torch's table, and no share of a GPU anywhere."""
    job = {**row("fc", 60, 80, "mtia_ccp_events", 102, correlation=1, stream=102), "pid": 9}
    call_name = "runFunction - job_prep_and_submit_for_execution"
    rows = [step("ProfilerStep#1", 0, 200), row("aten::mm", 10, 100), call(call_name, 20, 1, "mtia_runtime"), job]
    about = {"distributedInfo": {"backend": "mtia:hccl", "rank": 0}, "deviceProperties": [{"id": 0, "name": "MTIA"}]}
    (tmp_path / "t.json").write_text(json.dumps({**about, "traceEvents": rows}))
    text = opstrobe("views", "t.json").stdout
    parts = pages.section(pages.text_sections(text), "average step").rows
    assert [part.name for part in parts] == ["runtime calls", "operators", "other"]
    assert "device 0" not in text.lower() and "kernels" not in text
    assert "(no kernels: the trace has no device work)" in opstrobe("kernels", "t.json").stdout
    assert "(no kernels: the trace has no device work)" in opstrobe("kernels", "--by-category", "t.json").stdout
    table = opstrobe("table", "t.json").stdout
    assert "Self MTIA" in table and "CUDA" not in table and "Self MTIA time total: 80.000us" in table


OWN = [
    ROOT / "web/tests/traces/train.pt.trace.json.gz",
    *(ROOT / "tests/fuzz" / name for name in ("analyze/host.json", "analyze/training.json", "analyze/other_devices.json",
                                              "read/kineto/kineto.json", "read/kineto/opstrobe.json", "read/kineto/own.json")),
]  # fmt: skip


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_own(ask, path):
    found = ask("views", "--format", "json", str(path))
    assert steps_of_views(found) == steps_of_analyze(ask, str(path))
    assert_surfaces_agree(ask, str(path), found)


@pytest.mark.skipif(not SHARED, reason=f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")
@pytest.mark.parametrize("path", SHARED, ids=lambda path: str(path.relative_to(FOLDER.parent)))
def test_shared(ask, path):
    found = ask("views", "--format", "json", str(path))
    assert steps_of_views(found) == steps_of_analyze(ask, str(path))
    assert_surfaces_agree(ask, str(path), found)
    communication = communication_us(ask, str(path))
    in_steps = sum(step["communication"] for step in found["steps"]["rows"])
    host = sum(step["communication_calls"] for step in found["steps"]["rows"])
    # What runs at once on two streams counts once in steps; what is in no step, not at all. Without a device, steps
    # have the collectives of the host, of which the analyses of devices know nothing.
    if communication:
        assert in_steps - host <= communication + 0.5


def test_derived_steps_are_the_same_everywhere(ask, opstrobe, tmp_path):
    """A trace of torch.profiler without a schedule: steps end with the optimizer that steps first."""
    rows = [row("aten::uniform_", 0, 90)]
    for i in range(3):
        rows += [
            row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100 + 100 * i, 5, "user_annotation"),
            row("aten::mm", 110 + 100 * i, 60),
            row("Optimizer.step#SGD.step", 180 + 100 * i, 10, "user_annotation"),
            row("Optimizer.step#Adam.step", 192 + 100 * i, 4, "user_annotation"),
        ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    about = ask("info", "--format", "json", "t.json")["value"]
    assert (about["steps"], about["steps_from"], about["first_step"], about["last_step"]) == (3, "optimizer", 0, 2)
    found = ask("views", "--format", "json", "t.json")["steps"]
    assert (found["from"], found["names"]) == ("optimizer", ["0", "1", "2"])
    assert [step["total"] for step in found["rows"]] == [90, 100, 100]
    assert ask("lines", "--format", "json", "t.json")["steps"] == 3
    assert opstrobe("cut", "--steps", "1", "t.json", "cut.json").returncode == 0
    names = [event["name"] for event in json.loads((tmp_path / "cut.json").read_text())["traceEvents"]]
    assert names.count("aten::mm") == 1
    assert opstrobe("cut", "--steps", "3", "t.json", "none.json").returncode != 0


def test_what_is_outside_of_steps_is_in_no_figure_per_step(ask, tmp_path):
    """Nor is the first step if it takes much longer: kernels, categories, operators, modules and diff have the means of the others."""
    net = {"Python module id": 0}
    rows = [row("nn.Module: Net_0", 2000 * i + 4000, 1900, "python_function", **net) for i in range(5)]
    rows += [row("nn.Module: Net_1", 0, 2900, "python_function", 9, **{"Python module id": 1})]
    for i, (start, length) in enumerate([(0, 1600), (1600, 400), (2000, 400), (2400, 400)]):
        rows += [
            step(f"ProfilerStep#{i + 1}", start, length),
            row("nn.Module: Net_0", start + 10, length - 40, "python_function", **net),
            *launched("gemm", "aten::mm", start + 20, i + 1, 1000 if i == 0 else 100),
        ]
    for i in range(5):
        rows += launched("gemm", "aten::mm", 4020 + 2000 * i, 20 + i, 900)
        rows += [
            call("cudaMemcpyAsync", 4100 + 2000 * i, 40 + i),
            kernel("Memcpy", 90000 + 2000 * i, 500, 40 + i, "gpu_memcpy"),
        ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))

    def figures(*words):
        table = ask(*words, "--format", "json", "t.json")["table"]
        return [dict(zip(table["columns"], found, strict=True)) for found in table["rows"]]

    (found,) = figures("kernels")
    assert (found["calls"], found["step_us"], found["step_calls"]) == (9, 100, 1)
    assert {found["category"]: found["step_us"] for found in figures("kernels", "--by-category")} == {
        "matrix_product": 100, "memory": 0,
    }  # fmt: skip
    modules = {found["path"]: (found["calls"], found["percent"], found["step_us"]) for found in figures("modules")}
    assert modules == {"Net_0": (9, 90, 360), "Net_1": (1, None, 0)}  # the other thread is not that of the steps
    views = ask("views", "--format", "json", "t.json")
    (operator,) = views["operators"]["rows"]
    assert (operator["calls"], operator["step_self"], operator["step_calls"]) == (9, 100, 1)
    assert views["kernels"]["rows"][0]["step_total"] == 100
    (compared,) = ask("diff", "--format", "json", "t.json", "t.json")["kernels"]
    assert compared["left"]["per_step"] == {"calls": 1, "total": 100}
    assert all(
        gain["predicted_gain_percent"] <= 100 for gain in ask("advise", "--format", "json", "t.json")["findings"]
    )


def test_steps_that_end_in_functions_do_not_count_twice(ask, tmp_path):
    """Each step ends in a function that also begins the next one: no time is that of a step and of a function, too."""
    rows = [row("train.py(12): main", 0, 5000, "python_function", **{"Python id": 1})]
    for i in range(5):
        rows += [
            row(
                "train.py(4): train",
                1000 * i,
                990,
                "python_function",
                **{"Python id": 2 + i, "CallFrom": "train.py:14"},
            ),
            row("aten::mm", 1000 * i + 10, 800, CallFrom="train.py:5"),
            row("aten::zero_", 1000 * i + 910, 60, CallFrom="train.py:8"),
        ]
        if i:
            rows.append({**step(f"ProfilerStep#{i}", 1000 * i - 100, 1000), "args": {"CallFrom": "train.py:7"}})
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    (file,) = ask("lines", "--format", "json", "t.json")["files"]
    assert {line["line"]: (line["function"], line["self_us"]) for line in file["lines"] if line["self_us"]} == {
        4: ("train", 650), 5: ("train", 4000), 8: ("train", 300), 12: ("main", 50),
    }  # fmt: skip
    found = ask("advise", "--format", "json", "t.json")
    assert found["base"]["average_step_ms"] == 1
    python = [
        finding["predicted_gain_ms_per_step"] for finding in found["findings"] if finding["id"] == "python-in-step"
    ]
    assert sum(python) <= 0.14  # what is outside of operators
    assert sum(line["outside_percent"] for line in found["not_explained"]["lines"]) < 5


def test_operators_and_roofline_have_the_same_flops(opstrobe):
    """Also of elementwise operators, softmax and normalisations, which torch.profiler does not count."""
    trace = pathlib.Path(__file__).parents[2] / "web/tests/traces/train.pt.trace.json.gz"
    operators = json.loads(opstrobe("views", "--format", "json", str(trace)).stdout)["operators"]["rows"]
    roofline = json.loads(opstrobe("roofline", "--format", "json", "--roof", "60G,20G", str(trace)).stdout)["rows"]
    known = collections.Counter()
    for row in roofline:  # one for each type
        known[row["name"]] += row["flops"]
    known = {name: flops for name, flops in known.items() if flops}
    assert {"aten::relu", "aten::conv2d", "aten::_log_softmax"} <= known.keys()
    assert {row["name"]: row["flops"] for row in operators if row["flops"]} == known
