# SPDX-License-Identifier: Apache-2.0
"""The views: the request of each, the columns of its table, and the details of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from opstrobe._plain import printable
from opstrobe.results.library_line import library_line
from opstrobe.tui.figures import bar, cell_text, curve, place, shorten
from opstrobe.tui.flame import FlameView
from opstrobe.tui.flame_model import Flame, calls_modules, name_modules
from opstrobe.tui.help import Sheet, Words
from opstrobe.tui.source import Source, SourceError
from opstrobe.tui.table import TableView
from opstrobe.tui.table_model import Column, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.tui.app import TraceApp

STEP_PARTS = {
    "kernel": "Kernels", "memcpy": "Memory copies", "memset": "Memory sets", "communication": "Communication", "runtime": "Runtime calls",
    "dataloader": "Data loading", "cpu_exec": "Operators", "other": "Other",
}  # fmt: skip
PHASES = {
    "data_loading": "Data loading", "forward": "Forward", "backward": "Backward", "optimizer": "Optimizer", "other": "Other",
}  # fmt: skip
_BAR = 16
_STEPS_DRAWN = 60
_OPERATORS_SHOWN = 8
_FRAMES = 20000
_NAME_SHOWN = 60  # columns of a heading


class View(Vertical):
    """A view that requests its data when it is first shown."""

    title = ""
    is_of_steps = False  # shows the steps alone if they are only a part of the trace

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = False

    @property
    def trace_app(self) -> TraceApp:
        return self.app

    def compose(self) -> ComposeResult:
        yield Static(classes="covers", markup=False)
        yield Static("Loading …", classes="state", markup=False)
        yield self.content()

    def content(self) -> Any:
        raise NotImplementedError

    def ask(self) -> None:
        """Requests the data once. `fetch` runs on another thread, `draw` on that of the screen."""
        if self.is_asked:
            return
        self.is_asked = True
        self.reload()

    def reload(self) -> None:
        self.trace_app.ask(self.fetch, self._answered, self.fail)

    def fetch(self, source: Source) -> Any:
        raise NotImplementedError

    def draw(self, answer: Any) -> None:
        raise NotImplementedError

    def _answered(self, answer: Any) -> None:
        self.query_one(".state", Static).display = False
        covers = self.query_one(".covers", Static)
        covers.update(self._covers())
        covers.display = self.is_of_steps and bool(self.trace_app.source.steps)
        self.draw(answer)

    def _covers(self) -> str:
        source = self.trace_app.source
        first, _, last = source.steps.partition(":")
        steps = f"steps {first} to {last}" if last else f"step {first}"
        return f"The whole trace (t: {steps})" if source.is_whole else f"{steps.capitalize()} (t: the whole trace)"

    def fail(self, message: str) -> None:
        state = self.query_one(".state", Static)
        state.display = True
        state.update(f"Cannot show this: {message}")
        state.add_class("wrong")

    def focus_content(self) -> None:
        focusable = next(
            (widget for widget in self.query("Rows, FlameGraph, VerticalScroll") if widget.focusable), None
        )
        if focusable is not None:
            focusable.focus()

    def open_sheet(self, title: str, fetch: Callable[[Source], Any], describe: Callable[[Any], Text]) -> None:
        """Shows details above the view once the reply has arrived."""
        sheet = Sheet(shorten(printable(title), _NAME_SHOWN))
        self.trace_app.push_screen(sheet)
        self.trace_app.ask(
            fetch,
            lambda answer: sheet.show(describe(answer)),
            lambda message: sheet.show(Text(f"Cannot show this: {message}")),
        )


# --- overview


class Overview(View):
    title = "Overview"

    def content(self) -> VerticalScroll:
        return VerticalScroll(Static(classes="words", markup=False))

    def fetch(self, source: Source) -> dict[str, Any]:
        answer: dict[str, Any] = source.get(
            "views", parts="flags,steps,gpus,devices,operators,lost_events,trace_events"
        )
        answer["info"] = source.get("info")["value"]
        answer["memory"] = source.get("memory", top=1)["devices"]
        answer["advice"] = source.get("advice")
        return answer

    def draw(self, answer: dict[str, Any]) -> None:
        self.query_one(".words", Static).update(overview_text(answer))


def overview_text(answer: dict[str, Any]) -> Text:
    words = Words()
    steps, info = answer["steps"], answer["info"]
    recording = info.get("recording") or {}
    facts = [
        (str(info["file"]), ""), (cell_text(info["duration_us"], "us"), "recorded"), (f"{info['events']:,}", "events"),
        *((f"rank {rank}", "") for rank in [info["rank"]] if rank is not None),
    ]  # fmt: skip
    words.line(" · ".join(printable(f"{figure} {what}".strip()) for figure, what in facts))
    machine = [recording.get("cpu"), *(device.get("name") for device in answer["devices"]), *_versions(recording)]
    if any(machine):
        words.line(" · ".join(printable(str(part)) for part in machine if part), "dim")
    for diagnostic in answer.get("diagnostics", []):
        words.line(f"! {printable(diagnostic['message'])}", "bold")
    _steps_text(words, steps)
    _parts_text(words, steps)
    _memory_text(words, answer)
    _finding_text(words, answer["advice"])
    rows = operator_rows(answer)[:_OPERATORS_SHOWN]
    if rows:
        words.title("Operators with most self time")
        words.rows([
            (shorten(printable(row["name"]), 40), f"{row['calls']:,}", cell_text(_self_of(answer, row), "us"), cell_text(row["share"], "share"))
            for row in rows
        ])  # fmt: skip
    return words.done()


def _versions(recording: dict[str, Any]) -> list[str]:
    names = {"torch": "torch", "python": "Python", "cuda": "CUDA"}
    return [f"{title} {recording[name]}" for name, title in names.items() if recording.get(name)]


def _steps_text(words: Words, steps: dict[str, Any]) -> None:
    rows = steps["rows"]
    if steps["from"] == "none":
        words.title("Whole recording: no steps are in the trace")
        words.pairs([("Time", cell_text(steps["average"]["total"], "us"))])
        return
    words.title(f"{len(rows):,} step{'s' * (len(rows) != 1)}")
    pairs = [("Median step", cell_text(steps["median"], "us"))]
    if len(rows) > 1:
        mean = steps["breakdown"]["average"]["total"]  # like the median, without a first step that is apart
        pairs += [("Mean, p95", f"{cell_text(mean, 'us')}, {cell_text(steps['p95'], 'us')}")]
        pairs += [("Each", curve([row["total"] for row in rows[-_STEPS_DRAWN:]]))]
    waited = steps["waited_for_cpu"]
    if waited:
        pairs.append(
            ("Waited for a CPU", f"{cell_text(waited['ratio'], 'share')}, {cell_text(waited['average'], 'us')} a step")
        )
    words.pairs(pairs)
    if waited and waited["much"]:
        words.line(f"  ! {waited['had_by'].capitalize()} had the CPUs: times are too long.", "bold")
    for slow in steps["outliers"]:
        words.line(f"  Step {slow['name']} took {cell_text(slow['total'], 'us')}")
        for cause in slow["causes"][:2]:
            words.line(f"    {cause['title']}: {_cause(cause, 'value')} instead of {_cause(cause, 'typical')}")


def _cause(cause: dict[str, Any], member: str) -> str:
    return cell_text(cause[member], "count" if cause["is_count"] else "us")


def _parts_text(words: Words, steps: dict[str, Any]) -> None:
    phases = steps["phases"]
    parts = [
        ("Phases of a step", PHASES, phases["average"], phases["average_pct"]) if phases else None,
        ("Where the time goes", STEP_PARTS, steps["breakdown"]["average"], steps["breakdown"]["average_pct"]),
    ]
    for part in parts:
        if part is None:
            continue
        title, titles, average, percent = part
        rows = [
            (name, cell_text(average[id], "us"), cell_text(percent[id], "pct"), bar(percent[id] / 100, _BAR))
            for id, name in titles.items()
            if average[id] > 0
        ]
        words.title(title)
        words.rows(rows, right=lambda i: i in (1, 2))


def _memory_text(words: Words, answer: dict[str, Any]) -> None:
    pairs = [
        (f"Memory peak, {_device_title(device['device'])}", cell_text(device["peak"]["bytes"], "bytes"))
        for device in answer["memory"]
    ]
    pairs += [
        (f"GPU {gpu['id']} busy", cell_text(gpu["utilization_ratio"], "share"))
        for gpu in answer["gpus"]
        if gpu["utilization_ratio"] is not None
    ]
    if pairs:
        words.title("Devices")
        words.pairs(pairs)


def _finding_text(words: Words, advice: dict[str, Any]) -> None:
    words.title("What to change first")
    if not advice["findings"]:
        words.line(f"  {printable(advice['summary'])}")
        return
    finding = advice["findings"][0]
    words.line(f"  {printable(finding['title'])}")
    words.pairs([("Where", finding_place(finding) or "–"), ("Gain", finding_gain(finding))])


def finding_place(finding: dict[str, Any]) -> str:
    first = next(iter(finding["where"]), None)
    if first is None:
        return ""
    return place(first["file"], first["line"]) or printable(first["module"] or first["operator"] or "")


def finding_gain(finding: dict[str, Any]) -> str:
    percent = finding["predicted_gain_percent"]
    if not percent:
        return "–"
    warning = f" ({finding['predicted_gain_warning']})" if finding["predicted_gain_warning"] else ""
    return f"{finding['predicted_gain_bound']} {cell_text(percent, 'pct')}{warning}"


# --- operators


def operator_rows(answer: dict[str, Any], by_shape: bool = False) -> list[Row]:
    """The operators, each with its share of all self time."""
    part = answer["operators_by_input_shape" if by_shape else "operators"]
    sum_self = sum(_self_of(answer, row) for row in answer["operators"]["rows"])
    return [{**row, "share": _self_of(answer, row) / sum_self if sum_self > 0 else 0} for row in part["rows"]]


def _has_device(answer: dict[str, Any]) -> bool:
    flags = answer["flags"]
    return bool(flags["has_kernel"] or flags["has_memcpy_or_memset"])


def _self_of(answer: dict[str, Any], row: Row) -> float:
    time: float = row["device_self" if _has_device(answer) else "host_self"]
    return time


def _figure(id: str, title: str, kind: str, *, bar: bool = False) -> Column:
    return Column(id, title, kind, lambda row: row[id], bar)


def operator_columns(answer: dict[str, Any], by_shape: bool) -> list[Column]:
    columns = [Column("name", "Operator", "text", lambda row: row["name"])]
    if by_shape:
        columns.append(Column("input_shape", "Input shapes", "text", lambda row: row["input_shape"]))
    host = [_figure("host_self", "Self CPU", "us"), _figure("share", "Share", "share", bar=True)]
    if _has_device(answer):
        columns += [_figure("device_self", "Self device", "us"), host[1], _figure("calls", "Calls", "count"), host[0]]
        columns.append(_figure("device_total", "Device total", "us"))
    else:
        columns += [*host, _figure("calls", "Calls", "count")]
    columns += [
        Column("host_mean", "Mean", "us", lambda row: row["host_total"] / max(1, row["calls"])),
        _figure("host_total", "CPU total", "us"),
        _figure("host_min", "Shortest", "us"),
        _figure("host_max", "Longest", "us"),
    ]
    rows = answer["operators"]["rows"]
    optional = [
        _figure("self_cpu_memory_bytes", "Self CPU memory", "bytes"),
        _figure("self_device_memory_bytes", "Self device memory", "bytes"),
        _figure("flops", "FLOPs", "scaled"),
    ]
    return columns + [column for column in optional if any(row[column.id] for row in rows)]


class Operators(View):
    title = "Operators"
    is_of_steps = True
    BINDINGS = [Binding("b", "by_shape", "By shapes")]

    def __init__(self) -> None:
        super().__init__()
        self._answer: dict[str, Any] = {}
        self._by_shape = False

    def content(self) -> TableView:
        return TableView("share", empty="No operators. Record the activity CPU to see them.")

    def fetch(self, source: Source) -> Any:
        return source.get_of_steps("views", parts="flags,operators,operators_by_input_shape")

    def draw(self, answer: dict[str, Any]) -> None:
        self._answer = answer
        table = self.query_one(TableView)
        table.is_chosen = self._open
        self._show()

    def _show(self) -> None:
        shapes = self._answer["operators_by_input_shape"]
        missing = shapes["distinct"] - len(shapes["rows"]) if self._by_shape else 0
        self.query_one(TableView).show(
            operator_columns(self._answer, self._by_shape),
            operator_rows(self._answer, self._by_shape),
            f"{missing:,} with less time are left out" if missing > 0 else "",
        )

    def action_by_shape(self) -> None:
        if self._answer:
            self._by_shape = not self._by_shape
            self._show()

    def _open(self, row: Row) -> None:
        name = row["name"]
        shapes = [
            each for each in operator_rows(self._answer, True)
            if each["name"] == name and ("input_shape" not in row or row["input_shape"] == each["input_shape"])
        ]  # fmt: skip
        columns = operator_columns(self._answer, False)[1:]
        self.open_sheet(
            name,
            lambda source: source.get("timeline/calls", name=name),
            lambda calls: operator_text(row, columns, shapes, calls),
        )


def operator_text(row: Row, columns: list[Column], shapes: list[Row], calls: dict[str, Any]) -> Text:
    words = Words()
    if len(row["name"]) > _NAME_SHOWN:
        words.line(printable(row["name"]))
    words.pairs([(column.title, cell_text(column.value(row), column.kind)) for column in columns])
    if calls["count"]:
        words.title(f"{calls['count']:,} calls")
        members = {"min_ns": "Shortest", "median_ns": "Median", "p95_ns": "95th percentile", "max_ns": "Longest"}
        words.pairs([(title, cell_text(calls[member], "ns")) for member, title in members.items()])
        words.pairs([("Shortest to longest", curve(calls["histogram"]))])
    if calls["lines"]:
        words.title("Lines that call it")
        words.rows([
            (place(line["file"], line["line"]), f"{line['count']:,} calls", cell_text(line["total_ns"], "ns")) for line in calls["lines"]
        ])  # fmt: skip
    if shapes:
        words.title("Input shapes")
        words.rows([
            (shorten(printable(each["input_shape"]) or "–", 44), f"{each['calls']:,} calls", cell_text(each["host_total"], "us"))
            for each in shapes[:20]
        ])  # fmt: skip
    if calls["longest"]:
        words.title("Longest calls")
        words.rows([
            (f"at {cell_text(call['start_ns'], 'ns')}", cell_text(call["duration_ns"], "ns")) for call in calls["longest"]
        ])  # fmt: skip
    return words.done()


# --- kernels


class Kernels(View):
    title = "Kernels"
    is_of_steps = True

    def content(self) -> TableView:
        return TableView("total_us", empty="No kernels: the trace has no GPU activity.")

    def fetch(self, source: Source) -> Any:
        return source.get_of_steps("tables/kernels")["table"]

    def draw(self, table: dict[str, Any]) -> None:
        kinds = {
            "total_us": ("Total", "us"), "percent": ("Share", "pct"), "calls": ("Calls", "count"), "mean_us": ("Mean", "us"),
            "min_us": ("Shortest", "us"), "max_us": ("Longest", "us"), "occupancy_percent": ("Occupancy", "pct"),
            "blocks_per_sm": ("Blocks per SM", "number"),
        }  # fmt: skip
        columns = [Column("name", "Kernel", "text", lambda row: row["name"])]
        columns += [_figure(id, *kinds[id], bar=id == "percent") for id in kinds if id in table["columns"]]
        for id, title in {"operator": "Operator", "grid": "Grid", "block": "Block"}.items():
            if id in table["columns"]:
                columns.append(Column(id, title, "text", lambda row, id=id: _text(row[id])))  # type: ignore[misc]
        view = self.query_one(TableView)
        view.is_chosen = lambda row: self._open(row, columns)
        view.show(columns, _rows_of(table))

    def _open(self, row: Row, columns: list[Column]) -> None:
        name = row["name"]
        self.open_sheet(
            name,
            lambda source: source.get("timeline/calls", name=name),
            lambda calls: operator_text(row, columns[1:], [], calls),
        )


def _rows_of(table: dict[str, Any]) -> list[Row]:
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


# --- modules


class Modules(View):
    title = "Modules"
    is_of_steps = True
    BINDINGS = [Binding("space", "fold", "Open/close")]

    def content(self) -> TableView:
        return TableView(
            "total", empty="No modules. Record them with --with-modules.", parent_of=lambda row: row["parent"]
        )

    def fetch(self, source: Source) -> Any:
        return source.get_of_steps("modules")["modules"]

    def draw(self, modules: list[dict[str, Any]]) -> None:
        device = any(module["total"]["device_ns"] for module in modules)
        whole = sum(_module_time(module, device) for module in modules if module["parent"] is None)
        table = self.query_one(TableView)
        table.is_chosen = lambda row: self._open(row, whole, device)
        table.show(module_columns(modules, whole, device), modules)

    def action_fold(self) -> None:
        self.query_one(TableView).fold()

    def _open(self, module: Row, whole: int, device: bool) -> None:
        words = Words()
        words.pairs([("Class", printable(module["class"]))])
        columns = module_columns([module], whole, device)[1:]
        words.pairs([(column.title, cell_text(column.value(module), column.kind)) for column in columns])
        self.trace_app.push_screen(Sheet(printable(module["path"]), words.done()))


def _module_time(module: Row, device: bool) -> int:
    costs = module["total"]
    time: int = costs["device_ns"] + costs["backward_device_ns"] if device else costs["host_ns"] + costs["backward_ns"]
    return time


def module_columns(modules: list[dict[str, Any]], whole: int, device: bool) -> list[Column]:
    def cost(id: str, title: str, member: str, kind: str = "ns", part: str = "total") -> Column:
        return Column(id, title, kind, lambda row: row[part][member])

    columns = [
        Column("module", "Module", "text", lambda row: row["path"], shown=lambda row: row["path"].rpartition(".")[2]),
        Column("total", "Total", "ns", lambda row: _module_time(row, device)),
        Column("share", "Share", "share", lambda row: _module_time(row, device) / whole if whole else 0, bar=True),
        cost("forward", "Forward", "device_ns" if device else "host_ns"),
        cost("backward", "Backward", "backward_device_ns" if device else "backward_ns"),
        cost("self", "Self forward", "device_ns" if device else "host_ns", part="self"),
        _figure("calls", "Calls", "count"),
        Column("mean", "Forward a call", "ns", lambda row: _mean(row["total"]["device_ns" if device else "host_ns"], row["calls"])),
        _figure("parameter_count", "Parameters", "count"),
        cost("flops", "FLOPs", "flops", "scaled"),
        Column("memory", "Allocated", "bytes", lambda row: row["total"]["cpu_allocated_bytes"] + row["total"]["device_allocated_bytes"]),
        Column("class", "Class", "text", lambda row: row["class"].rpartition(".")[2]),
    ]  # fmt: skip
    optional = ("flops", "memory", "parameter_count")
    return [each for each in columns if each.id not in optional or any(each.value(module) for module in modules)]


def _mean(total: float, calls: int) -> float | None:
    return total / calls if calls else None


# --- lines


class Lines(View):
    """Lines of the program; those of libraries are shown on request, or if there are no others."""

    title = "Lines"
    is_of_steps = True
    BINDINGS = [Binding("l", "libraries", "Libraries")]

    def __init__(self) -> None:
        super().__init__()
        self._answer: dict[str, Any] = {}
        self._with_libraries = False

    def content(self) -> TableView:
        return TableView("self_us", empty="No lines. Record with opstrobe run, or with with_stack=True.")

    def fetch(self, source: Source) -> Any:
        return source.get_of_steps("lines")

    def draw(self, answer: dict[str, Any]) -> None:
        self._answer = answer
        self.query_one(TableView).is_chosen = self._open
        self._show()

    def _show(self) -> None:
        files = self._answer["files"]
        own = [file for file in files if not file["is_library"]]
        left_out = (
            0 if self._with_libraries or not own else sum(len(file["lines"]) for file in files if file["is_library"])
        )
        rows = [{**line, "file": file["file"]} for file in (own if left_out else files) for line in file["lines"]]
        self.query_one(TableView).show(
            line_columns(rows, self._answer["duration_us"]),
            rows,
            f"{left_out:,} line{'' if left_out == 1 else 's'} of libraries left out; l shows them" if left_out else "",
        )

    def action_libraries(self) -> None:
        if self._answer:
            self._with_libraries = not self._with_libraries
            self._show()

    def _open(self, row: Row) -> None:
        file = row["file"]
        self.open_sheet(
            place(file, row["line"]),
            lambda source: _source_or_why(source, file),
            lambda answer: source_text(row, answer),
        )


def _source_or_why(source: Source, file: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = source.get("source", file=file)
    except SourceError as error:
        return {"error": str(error)}
    return answer


def line_columns(rows: list[Row], duration_us: float) -> list[Column]:
    columns = [
        Column("place", "Line", "text", lambda row: place(row["file"], row["line"])),
        _figure("self_us", "Self", "us"),
        Column("share", "Share", "share", lambda row: row["self_us"] / duration_us if duration_us else 0, bar=True),
        _figure("host_us", "Total", "us"),
        _figure("calls", "Calls", "count"),
        _figure("device_us", "Device", "us"),
        _figure("allocated_bytes", "Allocated", "bytes"),
        Column("function", "Function", "text", lambda row: row["function"]),
        Column("file", "File", "text", lambda row: row["file"]),
    ]
    optional = ("device_us", "allocated_bytes")
    return [each for each in columns if each.id not in optional or any(each.value(row) for row in rows)]


def source_text(row: Row, answer: dict[str, Any], around: int = 6) -> Text:
    words = Words()
    words.text.no_wrap, words.text.overflow = True, "ellipsis"
    words.line(f"{printable(row['file'])} in {printable(row['function'] or '–')}")
    figures = [f"{title} {cell_text(row[id], kind)}" for id, title, kind in (
        ("self_us", "self", "us"), ("host_us", "total", "us"), ("calls", "calls", "count"),
        ("device_us", "device", "us"), ("allocated_bytes", "allocated", "bytes"),
    ) if row[id]]  # fmt: skip
    words.line(", ".join(figures))
    if "error" in answer:
        words.title("The source is not available")
        words.line(f"  {printable(answer['error'])}")
        return words.done()
    if answer["changed"]:
        words.line("  ! The file has changed since the recording", "bold")
    words.line("")
    lines = answer["text"].splitlines()
    first = max(0, row["line"] - 1 - around)
    for number, line in enumerate(lines[first : row["line"] + around], first + 1):
        here = number == row["line"]
        words.line(
            f"{'▶' if here else ' '}{number:>5}  {printable(line.expandtabs(4))}", "bold reverse" if here else ""
        )
    return words.done()


# --- flame graph


class FlameTab(View):
    title = "Flame"
    is_of_steps = True
    BINDINGS = [
        Binding("b", "backward", "Backward"),
        Binding("d", "device", "CPU/device", show=False),
        Binding("w", "wrappers", "Wrappers", show=False),
        Binding("h", "waits", "Waits of helper threads", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._metric = "self_cpu"
        self._backward = "under_forward"
        self._wrappers = "fold"
        self._waits = "leave_out"

    def content(self) -> FlameView:
        return FlameView()

    def fetch(self, source: Source) -> Any:
        stacks = source.get_of_steps(
            "stacks",
            metric=self._metric,
            backward=self._backward,
            wrappers=self._wrappers,
            waits=self._waits,
            frames=_FRAMES,
        )
        if calls_modules(stacks):
            name_modules(stacks, source.get("modules")["modules"])
        return Flame(stacks)

    def draw(self, flame: Flame) -> None:
        self.query_one(FlameView).show(flame)
        time = "CPU" if self._metric == "self_cpu" else "device"
        way = "under its forward operators" if self._backward == "under_forward" else "as it ran"
        state = self.query_one(".state", Static)
        state.display = True
        wrappers = "folded" if self._wrappers == "fold" else "kept"
        waits = f"; left out: {cell_text(flame.waits_ns, 'ns')} in which helper threads wait" if flame.waits_ns else ""
        state.update(
            f"{time} time; backward pass {way}; wrappers {wrappers}{waits}"
            if flame.total(-1)
            else f"No {time} time in call stacks."
        )

    def action_backward(self) -> None:
        self._backward = "as_run" if self._backward == "under_forward" else "under_forward"
        self.reload()

    def action_wrappers(self) -> None:
        self._wrappers = "keep" if self._wrappers == "fold" else "fold"
        self.reload()

    def action_waits(self) -> None:
        self._waits = "keep" if self._waits == "leave_out" else "leave_out"
        self.reload()

    def action_device(self) -> None:
        self._metric = "self_device" if self._metric == "self_cpu" else "self_cpu"
        self.reload()


# --- memory


class Memory(View):
    title = "Memory"
    is_of_steps = True

    def content(self) -> VerticalScroll:
        return VerticalScroll(Static(classes="words", markup=False))

    def fetch(self, source: Source) -> Any:
        return source.get_of_steps("memory", top=10)

    def draw(self, answer: dict[str, Any]) -> None:
        self.query_one(".words", Static).update(memory_text(answer))


def _device_title(name: str) -> str:
    """Returns "CPU" for torch's "cpu", and "GPU 0" for "cuda:0", "hip:0" and "xpu:0"; other devices have torch's name."""
    kind, _, index = name.partition(":")
    return "CPU" if kind == "cpu" else f"GPU {index}".strip() if kind in ("cuda", "hip", "xpu") else name


def memory_text(answer: dict[str, Any]) -> Text:
    words = Words()
    if not answer["devices"]:
        words.line("No memory records. Record allocations with --memory.")
    for device in answer["devices"]:
        peak = device["peak"]
        when = device["peak_time_ns"]
        words.title(f"{_device_title(device['device'])}: {cell_text(peak['bytes'], 'bytes')} at the peak"
                    + (f", {cell_text(when, 'ns')} after the start" if when is not None else ""))  # fmt: skip
        if peak["before_bytes"]:
            words.line(f"  {cell_text(peak['before_bytes'], 'bytes')} of it were allocated before the recording")
        parts = [
            (name.replace("_", " ").capitalize(), cell_text(size, "bytes"), cell_text(_part(size, peak["bytes"]), "share"),
             bar(_part(size, peak["bytes"]), _BAR))
            for name, size in peak["categories"].items() if size
        ]  # fmt: skip
        words.rows(parts, right=lambda i: i in (1, 2))
        for member, title in {
            "lines": "Lines",
            "modules": "Modules",
            "operators": "Operators",
            "shapes": "Shapes",
        }.items():
            rows = [
                (shorten(_holder(each), 44), cell_text(each["bytes"], "bytes"), f"{each['blocks']:,} blocks")
                for each in peak[member]
            ]
            if rows:
                words.title(f"{title} that hold it")
                words.rows(rows)
    for gap in answer["gaps"]:
        words.line(f"! {printable(gap)}", "dim")
    return words.done()


def _holder(entry: dict[str, Any]) -> str:
    if "file" in entry:
        return place(entry["file"], entry["line"]) or "(unknown)"
    return printable(entry["name"]) or "(none)"


def _part(part: float, whole: float) -> float:
    return part / whole if whole else 0


# --- advice


class Advice(View):
    title = "Advice"

    def content(self) -> TableView:
        return TableView("number", empty="No findings.")

    def fetch(self, source: Source) -> Any:
        return source.get("advice")

    def draw(self, answer: dict[str, Any]) -> None:
        columns = [
            Column("title", "Finding", "text", lambda row: row["title"]),
            Column("number", "#", "count", lambda row: row["number"]),
            Column("severity", "Severity", "text", lambda row: row["severity"]),
            Column("gain", "Gain", "pct", lambda row: row["predicted_gain_percent"] or None),
            Column("where", "Where", "text", lambda row: finding_place(row)),
        ]
        rows = [{**finding, "number": number} for number, finding in enumerate(answer["findings"], 1)]
        if rest := answer["not_explained"]:
            rows.append(_rest_row(rest, len(rows) + 1))
        table = self.query_one(TableView)
        table.descending = False
        table.is_chosen = self._open
        table.show(columns, rows, " ".join(filter(None, [answer["summary"] + ".", answer["base"]["text"]])))

    def _open(self, finding: Row) -> None:
        text = rest_text(finding) if finding["severity"] is None else finding_text(finding)
        self.trace_app.push_screen(Sheet(shorten(printable(finding["title"]), _NAME_SHOWN), text))


def _rest_row(rest: dict[str, Any], number: int) -> Row:
    """The time that no finding explains, as the last row of the table: it has neither a severity nor a gain."""
    return {**rest, "number": number, "severity": None, "predicted_gain_percent": None, "where": rest["lines"]}


def rest_text(rest: dict[str, Any]) -> Text:
    words = Words()
    for line in rest["lines"]:
        words.title(finding_place({"where": [line]}) or "–")
        words.line(f"  {printable(line['text'])}")
    if rest["hint"]:
        words.line(printable(rest["hint"]), "dim")
    return words.done()


def finding_text(finding: dict[str, Any]) -> Text:
    words = Words()
    gain = finding_gain(finding)
    if gain != "–":
        gain += f" of a step, {finding['predicted_gain_interval']}, {cell_text(finding['predicted_gain_ms_per_step'] * 1000, 'us')} each"
    pairs = [("Severity", finding["severity"]), ("Confidence", finding["confidence"]), ("Predicted gain", gain)]
    if measured := finding.get("measured"):
        lower, upper = measured["gain_lower_percent"], measured["gain_upper_percent"]
        text = f"{cell_text(measured['gain_percent'], 'pct')} of a step ({cell_text(lower, 'pct')} to {cell_text(upper, 'pct')}), results {measured['results']}"
        pairs.append(("Measured gain", printable(f"{text} [{measured['fix']}]")))
    words.pairs(pairs)
    for title, member in {"Evidence": "evidence", "Explanation": "explanation", "What to do": "advice"}.items():
        words.title(title)
        for line in finding[member].splitlines():
            words.line(f"  {printable(line)}")
    if finding["where"]:
        words.title("Where")
    for where in finding["where"]:
        words.line(f"  {place(where['file'], where['line']) or printable(where['module'] or where['operator'] or '')}")
        for through in where["through"]:
            words.line(f"    through {printable(library_line(through))}")
    for link in finding["links"]:
        words.line(printable(link), "dim")
    return words.done()


VIEWS: list[type[View]] = [Overview, Operators, Kernels, Modules, Lines, FlameTab, Memory, Advice]
