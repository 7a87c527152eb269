# SPDX-License-Identifier: Apache-2.0
"""`opstrobe tui` without a terminal: what its views show, and what keys and clicks do. tests/cli/test_tui.py has one."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
from textual.widgets import Input

from opstrobe import _core
from opstrobe.tui.app import TraceApp
from opstrobe.tui.figures import bar, cell_text, curve, printable, shorten
from opstrobe.tui.flame import FlameGraph, FlameView
from opstrobe.tui.flame_model import ROOT, Flame, calls_modules, name_modules
from opstrobe.tui.help import Sheet
from opstrobe.tui.live import LiveView
from opstrobe.tui.source import Source
from opstrobe.tui.table import ROWS_SHOWN, Rows, TableView
from opstrobe.tui.table_model import Column, FilterError, parse_filter, sort_rows, tree_lines

PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.head(x)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = net(torch.rand(8, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TIMEOUT_S = 300  # of what must not hang; nothing depends on how long it takes
OPSTROBE = pathlib.Path(sys.executable).parent / "opstrobe"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tui")
    (folder / "train.py").write_text(PROGRAM)
    options = ["--record-shapes", "--memory", "--with-stack", "--with-modules", "--flops", "-o", "t.json.gz"]
    environment = {**os.environ, "OPSTROBE_ROOF": "0"}
    subprocess.run(
        [OPSTROBE, "run", *options, "train.py"],
        cwd=folder, env=environment, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def printed(folder):
    """printed("lines"): the object that a command prints."""

    def call(command):
        words = [OPSTROBE, command, "--format", "json", "t.json.gz"]
        return json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300).stdout)

    return call


async def settle(pilot, is_done):
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        await pilot.pause(0.02)
        if is_done():
            return
    raise AssertionError("the screen does not come to rest")


def drive(path, use, size=(120, 40), is_whole=True):
    """Runs `use(app, pilot)` when the overview of the trace is on the screen. Views show the whole trace, or the steps alone."""

    async def run():
        app = TraceApp(Source(path))
        app.source.is_whole = is_whole
        async with app.run_test(size=size) as pilot:
            await settle(pilot, lambda: app.view() is not None and app.view().query(".words"))
            await settle(pilot, lambda: not app.view().query_one(".state").display)
            await use(app, pilot)
        app.source.close()

    asyncio.run(run())


async def go(app, pilot, key):
    """To the view with that number."""
    before = app.view()
    await pilot.press(key)
    await settle(pilot, lambda: app.view() is not before and app.view().is_asked)
    await settle(pilot, lambda: app.view().query_one(".state").display is False or app.view().query(FlameGraph))
    await pilot.pause()
    return app.view()


def shown(app):
    """The lines of the screen."""
    return ["".join(part.text for part in strip).rstrip() for strip in app.screen._compositor.render_strips(app.size)]


def cells(view):
    """The rows of its table, as text by title."""
    table = view.query_one(Rows)
    titles = [str(column.label).rstrip("▼▲") for column in table.columns.values()]
    return [dict(zip(titles, (cell.plain.strip() for cell in table.get_row_at(i)))) for i in range(table.row_count)]


# --- what is shown


def test_the_overview_has_the_figures_of_views(folder, printed):
    views, advice = printed("views"), printed("advise")
    steps = views["steps"]

    async def use(app, pilot):
        text = app.view().query_one(".words").content.plain
        assert "4 steps" in text
        median = next(line for line in text.splitlines() if "Median step" in line)
        assert median.split("step")[1].strip() == _core.format_duration(steps["median"] * 1000)
        mean = steps["breakdown"]["average"]["total"]  # as in text
        assert f"{_core.format_duration(mean * 1000)}, {_core.format_duration(steps['p95'] * 1000)}" in text
        for phase, title in (("forward", "Forward"), ("backward", "Backward"), ("optimizer", "Optimizer")):
            line = next(line for line in text.splitlines() if line.strip().startswith(title))
            average, percent = steps["phases"]["average"][phase], steps["phases"]["average_pct"][phase]
            assert _core.format_duration(average * 1000) in line and _core.format_percent(percent) in line
        table = printed("memory")["table"]
        peak = dict(zip(table["columns"], table["rows"][0]))
        assert peak["held_by"] == "all" and _core.format_bytes(peak["bytes"]) in text
        if advice["findings"]:
            assert advice["findings"][0]["title"] in text

    drive(folder / "t.json.gz", use, (120, 60))


def test_operators_equal_json_to_the_digit(folder, printed):
    operators = printed("views")["operators"]["rows"]
    by_name = {row["name"]: row for row in operators}
    whole = sum(row["host_self"] for row in operators)

    async def use(app, pilot):
        rows = cells(await go(app, pilot, "2"))
        assert len(rows) == len(operators)
        for row in rows:
            expected = by_name[row["Operator"]] if "…" not in row["Operator"] else None
            if expected is None:
                continue
            assert row["Self CPU"] == _core.format_duration(expected["host_self"] * 1000)
            assert row["CPU total"] == _core.format_duration(expected["host_total"] * 1000)
            assert row["Mean"] == _core.format_duration(expected["host_total"] / expected["calls"] * 1000)
            assert row["Longest"] == _core.format_duration(expected["host_max"] * 1000)
            assert row["Calls"] == f"{expected['calls']:,}"
            assert row["Share"].startswith(_core.format_percent(expected["host_self"] / whole * 100))
            assert row["Self CPU memory"] == _core.format_bytes(expected["self_cpu_memory_bytes"])
        longest = max(operators, key=lambda row: row["host_self"])
        assert rows[0]["Operator"] == longest["name"]
        shown = float(rows[0]["Self CPU"].split()[0])
        assert shown == pytest.approx(longest["host_self"] / 1000 ** (longest["host_self"] >= 1000), rel=0.005)

    drive(folder / "t.json.gz", use, (200, 40))


def test_steps_alone_and_the_whole_trace(folder):
    """Views open on the steps, as in the browser, with the figures of `--steps`; a key shows the whole trace."""

    def self_us(*options):
        words = [OPSTROBE, "lines", "--format", "json", *options, "t.json.gz"]
        files = json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300).stdout)[
            "files"
        ]
        return sum(line["self_us"] for file in files if not file["is_library"] for line in file["lines"])

    async def use(app, pilot):
        def shown_us():
            return sum(row["self_us"] for row in app.view().query_one(TableView).rows)

        await go(app, pilot, "5")
        covers = app.view().query_one(".covers")
        assert str(covers.content) == "Steps 0 to 3 (t: the whole trace)" and covers.display
        assert shown_us() == pytest.approx(self_us("--steps", "0:3"))
        assert shown_us() < self_us()
        await pilot.press("t")
        await settle(pilot, lambda: str(covers.content) == "The whole trace (t: steps 0 to 3)")
        assert shown_us() == pytest.approx(self_us())
        await go(app, pilot, "1")
        assert not app.view().query_one(".covers").display
        await go(app, pilot, "5")
        await pilot.press("t")
        await settle(pilot, lambda: str(covers.content) == "Steps 0 to 3 (t: the whole trace)")
        assert shown_us() == pytest.approx(self_us("--steps", "0:3"))

    drive(folder / "t.json.gz", use, is_whole=False)


def test_details_of_an_operator(folder, printed):
    shapes = [row for row in printed("views")["operators_by_input_shape"]["rows"] if row["name"] == "aten::addmm"]

    async def use(app, pilot):
        await go(app, pilot, "2")
        await pilot.press("slash", *"addmm", "enter", "enter")
        await settle(
            pilot,
            lambda: isinstance(app.screen, Sheet) and "Longest calls" in app.screen.query_one("Static").content.plain,
        )
        text = app.screen.query_one("Static").content.plain
        assert "12 calls" in text and "train.py:13" in text and "train.py:14" in text
        for shape in shapes:
            line = next(line for line in text.splitlines() if shape["input_shape"][:40] in line)
            assert _core.format_duration(shape["host_total"] * 1000) in line
        await pilot.press("escape")
        assert not isinstance(app.screen, Sheet)

    drive(folder / "t.json.gz", use)


def test_filter_sort_and_shapes(folder):
    async def use(app, pilot):
        view = await go(app, pilot, "2")
        table = view.query_one(TableView)
        count = len(table.lines)
        await pilot.press("slash", *"calls>=12 aten")
        assert 0 < len(table.lines) < count
        assert all(int(row["Calls"].replace(",", "")) >= 12 for row in cells(view))
        await pilot.press("space", *"nope>1ms")
        note = view.query_one(".note")
        assert "No column 'nope' with figures (choose from Self_CPU" in str(note.content) and note.has_class("wrong")
        await pilot.press("enter")
        assert app.focused is table.table  # the filter stays, and its error
        await pilot.press("escape")
        assert len(table.lines) == count and not note.display
        await pilot.press("s")
        assert table.order == "calls"
        calls = [line.row["calls"] for line in table.lines]
        assert calls == sorted(calls, reverse=True)
        await pilot.press("r")
        assert [line.row["calls"] for line in table.lines] == sorted(calls)
        await pilot.press("b")
        assert "Input shapes" in cells(view)[0] and len(table.lines) > count

    drive(folder / "t.json.gz", use)


def test_a_click_on_a_heading_sorts(folder):
    async def use(app, pilot):
        view = await go(app, pilot, "2")
        table = view.query_one(TableView)
        head = next(line for line in shown(app) if "Operator" in line and "Calls" in line)
        await pilot.click(Rows, offset=(head.index("Calls") + 1, 0))
        assert table.order == "calls" and table.descending
        await pilot.click(Rows, offset=(head.index("Operator") + 1, 0))
        names = [line.row["name"].lower() for line in table.lines]
        assert table.order == "name" and names == sorted(names)

    drive(folder / "t.json.gz", use)


def test_modules_are_a_tree(folder, printed):
    answer = printed("modules")["table"]
    expected = {row["path"]: row for row in (dict(zip(answer["columns"], row)) for row in answer["rows"])}

    async def use(app, pilot):
        view = await go(app, pilot, "4")
        rows = cells(view)
        assert sorted(row["Module"] for row in rows) == ["0", "1", "head", "▾ Net", "▾ blocks"]
        assert len(rows) == len(expected) == 5
        by_path = {line.row["path"]: row for line, row in zip(view.query_one(TableView).lines, rows)}
        for path, row in by_path.items():
            assert row["Calls"] == f"{expected[path]['calls']:,}"
            assert row["Parameters"] == f"{expected[path]['parameters']:,}"
            assert row["Forward"] == _core.format_duration(expected[path]["host_us"] * 1000)
            assert row["Backward"] == _core.format_duration(expected[path]["backward_us"] * 1000)
            assert row["Allocated"] == _core.format_bytes(expected[path]["cpu_allocated_bytes"])
        await pilot.press(*["down"] * [row["Module"] for row in rows].index("▾ blocks"), "space")
        assert sorted(row["Module"] for row in cells(view)) == ["head", "▸ blocks", "▾ Net"]
        await pilot.press("space")
        assert len(cells(view)) == 5
        await pilot.press("slash", *"blocks")
        assert [row["Module"] for row in cells(view)][:2] == ["▾ Net", "▾ blocks"] and len(cells(view)) == 4

    drive(folder / "t.json.gz", use, (160, 40))


def test_lines_and_their_source(folder, printed):
    files = printed("lines")["files"]
    mine = next(file for file in files if file["file"].endswith("train.py"))

    async def use(app, pilot):
        view = await go(app, pilot, "5")
        note = view.query_one(".note")
        libraries = sum(len(file["lines"]) for file in files if file["is_library"])
        assert (
            libraries > 0 and str(note.content).startswith(f"{libraries} line") and "l shows them" in str(note.content)
        )
        assert len(cells(view)) == len(mine["lines"])
        await pilot.press("l")
        assert len(cells(view)) == sum(len(file["lines"]) for file in files) and not note.display
        await pilot.press("l")
        rows = {row["Line"]: row for row in cells(view)}
        for line in mine["lines"]:
            row = rows[f"train.py:{line['line']}"]
            assert row["Self"] == _core.format_duration(line["self_us"] * 1000)
            assert row["Total"] == _core.format_duration(line["host_us"] * 1000)
            assert row["Calls"] == f"{line['calls']:,}"
        await pilot.press("slash", *"train.py:22", "enter", "enter")
        await settle(
            pilot, lambda: isinstance(app.screen, Sheet) and "▶" in app.screen.query_one("Static").content.plain
        )
        text = app.screen.query_one("Static").content.plain
        assert "▶   22      optimizer.step()" in text and "   21      loss.backward()" in text

    drive(folder / "t.json.gz", use)


def test_a_source_that_is_gone(folder, tmp_path):
    rows = [
        {
            "ph": "X",
            "cat": "python_function",
            "name": "gone/away.py(7): f",
            "pid": 1,
            "tid": 1,
            "ts": 0,
            "dur": 90,
            "args": {},
        },
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 9, "args": {}},
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))

    async def use(app, pilot):
        await go(app, pilot, "5")
        await pilot.press("enter")
        await settle(
            pilot, lambda: isinstance(app.screen, Sheet) and "source" in app.screen.query_one("Static").content.plain
        )
        assert "The source is not available" in app.screen.query_one("Static").content.plain

    drive(tmp_path / "t.json", use)


def calls_of(graph, name):
    """How many frames have the name. A call folds where it only passes on, so that the number of all frames says nothing."""
    reply = graph.flame.reply
    return sum(name in reply["names"][each]["name"] for each in reply["name"])


def test_the_flame_graph(folder):
    async def use(app, pilot):
        await go(app, pilot, "6")
        await settle(pilot, lambda: app.view().query_one(FlameGraph).boxes)
        graph = app.view().query_one(FlameGraph)
        note = app.view().query_one(FlameView).query_one(".note")
        whole = graph.flame.total(ROOT)
        assert f"total {_core.format_duration(whole)} (100 %)" in str(note.content)
        await pilot.press("down", "enter")
        assert graph.zoomed != ROOT and graph.box().width == graph.size.width
        await pilot.press("backspace")
        assert graph.zoomed == ROOT
        await pilot.press("slash", *"linear", "enter")
        assert "linear" in graph.flame.frame(graph.selected)["name"].lower()
        hits = {node for node in graph.found}
        assert graph.selected in hits and f"{len(hits):,} frames" in str(note.content)
        await pilot.press("n")
        assert graph.selected in hits
        await pilot.press("home")
        box = graph.boxes[2]
        await pilot.click(FlameGraph, offset=(box.left, box.depth - graph._first))
        assert graph.selected == box.node
        await pilot.press("home")
        assert graph.zoomed == ROOT
        assert "wrappers folded" in app.view().query_one(".state").content
        wrappers = calls_of(graph, "_call_impl")
        await pilot.press("w")
        await settle(pilot, lambda: "wrappers kept" in app.view().query_one(".state").content)
        assert calls_of(graph, "_call_impl") > wrappers and graph.flame.total(ROOT) == whole

    drive(folder / "t.json.gz", use, (120, 60))


def test_a_search_for_narrow_frames(folder):
    """Frames that are too narrow to be drawn are found, too."""

    async def use(app, pilot):
        await go(app, pilot, "6")
        await settle(pilot, lambda: app.view().query_one(FlameGraph).boxes)
        graph = app.view().query_one(FlameGraph)
        drawn = {graph.flame.frame(box.node)["name"] for box in graph.boxes}
        narrow = min((node for node in range(1, len(graph.flame.reply["name"]))), key=graph.flame.total)
        name = graph.flame.frame(narrow)["name"]
        assert name not in drawn
        await pilot.press("slash")
        app.view().query_one(Input).value = name
        await pilot.press("enter")
        assert name in graph.flame.frame(graph.selected)["name"] and graph.box().width == graph.size.width

    drive(folder / "t.json.gz", use, (60, 60))


def test_memory_and_advice(folder, printed):
    advice = printed("advise")

    async def use(app, pilot):
        text = (await go(app, pilot, "7")).query_one(".words").content.plain
        assert "CPU: " in text and "at the peak" in text and "Lines that hold it" in text and "Parameter" in text
        view = await go(app, pilot, "8")
        rest = advice["not_explained"]
        titles = [each["title"] for each in [*advice["findings"], rest]]
        assert [row["Finding"] for row in cells(view)] == titles
        if advice["findings"]:
            await pilot.press("enter")
            assert advice["findings"][0]["evidence"].splitlines()[0] in app.screen.query_one("Static").content.plain
            await pilot.press("escape")
            await pilot.pause()
        await pilot.press("end", "enter")
        await pilot.pause()
        text = app.screen.query_one("Static").content.plain
        assert rest["lines"] and all(line["text"] in text for line in rest["lines"])

    drive(folder / "t.json.gz", use, (200, 50))


def test_keys_and_sizes(folder):
    async def use(app, pilot):
        for width, height in ((80, 24), (40, 10), (160, 50), (80, 24)):
            await pilot.resize_terminal(width, height)
            for key in "12345678":
                await pilot.press(key)
                await pilot.pause()
        lines = shown(app)
        assert len(lines) == 24 and max(map(len, lines)) <= 80
        assert all(title in lines[0] for title in ("Overview", "Operators", "Modules", "Flame", "Advice"))
        await pilot.press("question_mark")
        assert isinstance(app.screen, Sheet) and "Flame graph" in app.screen.query_one("Static").content.plain
        await pilot.press("q")
        assert not isinstance(app.screen, Sheet) and app.is_running
        await pilot.press("question_mark", "6")
        assert not isinstance(app.screen, Sheet) and app.view().title == "Flame"
        await pilot.press("q")
        assert app.return_code == 0

    drive(folder / "t.json.gz", use, (80, 24))


def test_the_whole_recording_where_there_are_no_steps(tmp_path):
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": "a\x1b[31m", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 6, "args": {}}
        for i in range(3)
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))

    async def use(app, pilot):
        text = app.view().query_one(".words").content.plain
        assert "no steps are in the trace" in text and " step" not in text.replace("no steps", "")
        assert "a?[31m" in text and "\x1b" not in text
        for key, words in (("3", "No kernels"), ("4", "No modules"), ("5", "No lines"), ("7", "No memory")):
            await go(app, pilot, key)
            assert words in "\n".join(shown(app))

    drive(tmp_path / "t.json", use)


def test_choosing_one_of_several_traces(tmp_path):
    for name in ("a", "b"):
        row = {"ph": "X", "cat": "cpu_op", "name": f"op_{name}", "pid": 1, "tid": 1, "ts": 0, "dur": 6, "args": {}}
        (tmp_path / f"{name}.json").write_text(json.dumps({"traceEvents": [row]}))

    async def run():
        app = TraceApp(Source(tmp_path))
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot, lambda: app.query("OptionList"))
            await pilot.press("down", "enter")
            await settle(pilot, lambda: app.view() is not None and "op_" in "\n".join(shown(app)))
            assert "op_b" in "\n".join(shown(app))
        app.source.close()

    asyncio.run(run())


def test_a_trace_that_cannot_be_read(tmp_path):
    (tmp_path / "t.json").write_text("this is text")

    async def run():
        app = TraceApp(Source(tmp_path / "t.json"))
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot, lambda: "Cannot show the trace" in "\n".join(shown(app)))
            await pilot.press("q")
        assert app.return_code == 1
        app.source.close()

    asyncio.run(run())


LIVE = """
import sys, torch
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
step = 0
while step != int(sys.argv[1]):
    net(torch.rand(4, 8)).backward(torch.ones(4, 8))
    with torch.profiler.record_function('an \\x1b[31m"odd"\\\\name'):
        sum(range(20000))
    optimizer.step()
    step += 1
    if step <= 3:
        print("step", step)
"""


def run_live(tmp_path, words, use):
    (tmp_path / "train.py").write_text(LIVE)

    async def run():
        app = TraceApp(None, words)
        async with app.run_test(size=(120, 40)) as pilot:
            await use(app, pilot)
        return app

    return asyncio.run(run())


def test_a_program_while_it_runs_and_its_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def use(app, pilot):
        live = app.query_one(LiveView)
        await settle(pilot, lambda: "steps" in str(live.query_one(".state").content) and cells(live))
        await settle(pilot, lambda: "step 3" in "\n".join(shown(app)))  # its output has a place
        await settle(pilot, lambda: any(row["Operator or annotation"] == 'an ?[31m"odd"\\name' for row in cells(live)))
        await pilot.press("q")  # interrupts the program
        await settle(pilot, lambda: live.status is not None)
        assert live.trace == str(tmp_path / "t.json") and "KeyboardInterrupt" in "\n".join(live.query_one("Log").lines)
        await pilot.press("enter")
        await settle(pilot, lambda: app.view() is not None and "Median step" in "\n".join(shown(app)))
        await pilot.press("q")

    app = run_live(tmp_path, ["-o", "t.json", "train.py", "-1"], use)
    assert app.return_code == 0 and (tmp_path / "t.json").exists()
    app.source.close()


def test_the_live_figures_are_those_of_the_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    live_calls = {}

    async def use(app, pilot):
        live = app.query_one(LiveView)
        await settle(pilot, lambda: live.status is not None)
        assert live.status == 0 and live.trace and "ended with status 0: Enter shows the trace" in "\n".join(shown(app))
        live_calls.update((row["name"], row["calls"]) for row in live.query_one(TableView).rows)

    run_live(tmp_path, ["-o", "t.json", "train.py", "25"], use)
    words = [OPSTROBE, "table", "--format", "json", "--row-limit", "1000", "t.json"]
    table = json.loads(subprocess.run(words, check=True, capture_output=True, timeout=300).stdout)["table"]
    calls = {row["name"]: row["count"] for row in (dict(zip(table["columns"], row)) for row in table["rows"])}
    assert live_calls.pop("ProfilerStep") == 25
    assert live_calls.pop('an ?[31m"odd"\\name') == 25
    assert len(live_calls) > 5 and live_calls == {name: calls[name] for name in live_calls}


def test_a_program_that_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def use(app, pilot):
        live = app.query_one(LiveView)
        await settle(pilot, lambda: live.status is not None)
        assert "ended with status 2: no trace was written" in "\n".join(shown(app))
        assert "missing.py" in "\n".join(live.query_one("Log").lines)
        await pilot.press("q")

    assert run_live(tmp_path, ["missing.py"], use).return_code == 0


# --- without a screen

ROWS = [
    {"name": "aten::mm", "calls": 12, "self": 1500.0, "size": None},
    {"name": "aten::add", "calls": 3, "self": 20.0, "size": 2**21},
    {"name": "Fwd 1", "calls": 7, "self": 300.0, "size": 100},
]
COLUMNS = [
    Column("name", "Name", "text", lambda row: row["name"]),
    Column("calls", "Calls", "count", lambda row: row["calls"]),
    Column("self", "Self CPU", "us", lambda row: row["self"]),
    Column("size", "Size", "bytes", lambda row: row["size"]),
    Column("host_total", "CPU total", "us", lambda row: 2 * row["self"]),
    Column("device_total", "Device total", "us", lambda row: 3 * row["self"]),
]


@pytest.mark.parametrize(
    "text, names",
    [
        ("aten", ["aten::mm", "aten::add"]),
        ("ATEN -mm", ["aten::add"]),
        ('"fwd 1"', ["Fwd 1"]),
        ("calls>3", ["aten::mm", "Fwd 1"]),
        ("calls>=3 calls<=7", ["aten::add", "Fwd 1"]),
        ("calls=7", ["Fwd 1"]),
        ("self>=1.5ms", ["aten::mm"]),
        ("self<300", ["aten::add"]),
        ("selfcpu<1ms", ["aten::add", "Fwd 1"]),
        ("cpuself<1ms", ["aten::add", "Fwd 1"]),
        ("size>1MB", ["aten::add"]),
        ("calls > 3", ["aten::mm", "Fwd 1"]),
        ("aten -calls >=10 self<1s", ["aten::add"]),
        ("device_total>=4.5ms", ["aten::mm"]),
        ("-size>1MB", ["aten::mm", "Fwd 1"]),
        ("", ["aten::mm", "aten::add", "Fwd 1"]),
    ],
)
def test_filters(text, names):
    test = parse_filter(text, COLUMNS)
    assert [row["name"] for row in ROWS if test(row)] == names


@pytest.mark.parametrize(
    "text, why",
    [
        ("speed>10", "No column 'speed' with figures"),
        ("calls>many", "'many' is not a number"),
        ("calls>10ms", "'Calls' has no unit"),
        ("speed > 10", "No column 'speed' with figures (choose from Calls, Self_CPU, Size, CPU_total, Device_total)"),
        ("self>", "'self>' has no number: write for example Self_CPU>1ms"),
        ("self >", "'self>' has no number"),
        ("self>10kg", "Invalid unit 'kg' (choose from ns, us, µs, ms, s)"),
    ],
)
def test_filters_that_are_wrong(text, why):
    with pytest.raises(FilterError) as error:
        parse_filter(text, COLUMNS)
    assert why in str(error.value)


def test_order_and_trees():
    assert [row["name"] for row in sort_rows(ROWS, COLUMNS[3], True)] == ["aten::add", "Fwd 1", "aten::mm"]
    assert [row["name"] for row in sort_rows(ROWS, COLUMNS[3], False)] == ["Fwd 1", "aten::add", "aten::mm"]
    parents = {"aten::mm": None, "aten::add": 0, "Fwd 1": 0}
    lines = tree_lines(ROWS, lambda row: parents[row["name"]], COLUMNS[2], True, set(), None)
    assert [(line.row["name"], line.depth, line.is_open) for line in lines] == [
        ("aten::mm", 0, True),
        ("Fwd 1", 1, None),
        ("aten::add", 1, None),
    ]
    lines = tree_lines(ROWS, lambda row: parents[row["name"]], None, True, {0}, None)
    assert [(line.row["name"], line.is_open) for line in lines] == [("aten::mm", False)]
    lines = tree_lines(ROWS, lambda row: parents[row["name"]], None, True, {0}, lambda row: row["calls"] == 3)
    assert [line.row["name"] for line in lines] == ["aten::mm", "aten::add"]


def test_long_tables_say_what_they_leave_out(tmp_path):
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": f"op_{i}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 6, "args": {}}
        for i in range(ROWS_SHOWN + 5)
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))

    async def use(app, pilot):
        view = await go(app, pilot, "2")
        assert view.query_one(Rows).row_count == ROWS_SHOWN
        assert "the first 1,000 of 1,005 rows" in str(view.query_one(".note").content)
        await pilot.press("slash", *"op_1004")
        assert [row["Operator"] for row in cells(view)] == ["op_1004"]

    drive(tmp_path / "t.json", use)


def test_boxes_of_a_flame_graph():
    names = [{"name": name, "file": None, "line": None} for name in "abc"]
    flame = Flame(
        {
            "total_ns": 100,
            "names": names,
            "parent": [-1, 0, 0],
            "name": [0, 1, 2],
            "self_ns": [10, 30, 60],
            "sum_ns": [100, 30, 60],
        }
    )
    boxes = {box.node: (box.depth, box.left, box.width) for box in flame.boxes(ROOT, 100, 10)}
    assert boxes == {ROOT: (0, 0, 100), 0: (1, 0, 100), 2: (2, 0, 60), 1: (2, 60, 30)}
    boxes = {box.node: (box.depth, box.left, box.width) for box in flame.boxes(2, 50, 10)}
    assert boxes == {ROOT: (0, 0, 50), 0: (1, 0, 50), 2: (2, 0, 50)}
    assert flame.find("B") == {1} and flame.find("") == set()
    assert flame.time_of({0, 1}) == 100 and flame.time_of({1, 2}) == 90


def test_modules_of_a_flame_graph_have_their_paths():
    calls = ["nn.Module: Linear_0", "nn.Module: Linear_1", "nn.Module: Tanh_0", "train.py(3): main"]
    modules = [
        {"name": "nn.Module: Linear_0", "path": "blocks.0"},
        {"name": "nn.Module: Linear_1", "path": "encoder"},
        {"name": "nn.Module: Linear_1", "path": "decoder"},  # of another process
        {"name": "", "path": "blocks.1"},
    ]
    reply = {"names": [{"name": name} for name in calls]}
    assert calls_modules(reply)
    name_modules(reply, modules)
    assert [frame["name"] for frame in reply["names"]] == ["blocks.0", "Linear_1", "Tanh_0", "train.py(3): main"]
    assert not calls_modules(reply)


def test_figures():
    assert cell_text(1500.0, "us") == "1.50 ms" and cell_text(None, "us") == "–"
    assert cell_text(1234567, "count") == "1,234,567" and cell_text(0.256, "share") == "25.6 %"
    assert cell_text(2**20, "bytes") == "1.00 MiB" and cell_text(True, "flag") == "yes"
    assert bar(0.5, 8) == "████" and bar(0, 8) == "" and bar(1e-9, 8) == "▏" and bar(2, 8) == "█" * 8
    assert curve([0, 1, 2]) == " ▅█" and curve([]) == ""
    assert shorten("abcdefghij", 5) == "abc…j" and shorten("abc", 3) == "abc" and shorten("abcd", 2) == "ab"
    assert printable("a\x1b[0m\u202eb") == "a?[0m?b"
