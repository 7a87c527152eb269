# SPDX-License-Identifier: Apache-2.0
"""Stacks as text in the trace, with `verbose`, for tools that read nothing else."""

import json
import re

import pytest

import opstrobe
from opstrobe import record_function

torch = pytest.importorskip("torch")


def leaf():
    with record_function("range"):
        return torch.ones(3, requires_grad=True) + 1


def branch():
    leaf().sum().backward()


def rows_of(module, path, verbose=True, **options):
    options = {"with_stack": True, **options}
    config = module._ExperimentalConfig(verbose=verbose)
    with module.profile(experimental_config=config, **options) as prof:
        branch()
    prof.export_chrome_trace(str(path))
    return prof, [row for row in json.loads(path.read_text())["traceEvents"] if row["ph"] == "X"]


def stacks(rows, name):
    return [row["args"]["Call stack"] for row in rows if row["name"] == name]


def functions(stack):
    """File and function of each Python function, down to this file's; names of C functions differ on purpose."""
    assert stack.endswith(";")
    frames = [re.fullmatch(r"(.*)\(\d+\): (?:\w+\.)*(\w+)", frame) for frame in stack[:-1].split(";")]
    names = [frame.groups() for frame in frames if frame]
    return names[: [name for _, name in names].index("branch") + 1]


@pytest.mark.torch_like("2.13")
def test_call_stacks_are_those_of_torch(tmp_path):
    branch()
    _, theirs = rows_of(torch.profiler, tmp_path / "theirs.json")
    _, ours = rows_of(opstrobe, tmp_path / "ours.json")

    for name in ("aten::add", "aten::sum", "SumBackward0", "torch::autograd::AccumulateGrad"):
        found = [[functions(stack) for stack in stacks(rows, name)] for rows in (ours, theirs)]
        assert found[0] == found[1] and found[0]


@pytest.mark.torch_like("2.13")
def test_memory_has_the_call_stacks_of_torch(tmp_path):
    """Reports from inside an operator, between operators, and from a free that Python makes."""

    def reports(module):
        rows_of(module, tmp_path / "t.json", profile_memory=True)
        rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
        args = [row["args"] for row in rows if row.get("name") == "[memory]"]
        return [(row["Bytes"], functions(row["Call stack"])) for row in args if "branch" in row.get("Call stack", "")]

    branch()
    theirs, ours = reports(torch.profiler), reports(opstrobe)
    assert ours == theirs
    assert {len(stack) for _, stack in ours} > {1, 2}
    assert any(size < 0 for size, _ in ours)


def test_memory_has_no_call_stacks_without_verbose(tmp_path):
    rows_of(opstrobe, tmp_path / "t.json", verbose=False, profile_memory=True)
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    memory = [row for row in rows if row.get("name") == "[memory]"]
    assert memory and not any("Call stack" in row["args"] for row in memory)


def test_call_stack_follows_parents(tmp_path):
    prof, rows = rows_of(opstrobe, tmp_path / "t.json")
    events = {event.external_id: event for event in prof.events()}
    seen = 0
    for row in rows:
        event = events.get(row.get("args", {}).get("External id"))
        if event is None:
            continue
        way, parent = [], event.cpu_parent
        while parent is not None:
            if parent.is_python_function:
                way.append(parent.name)
            parent = parent.cpu_parent
        assert row["args"].get("Call stack", "") == "".join(name + ";" for name in way)
        seen += bool(way)
    assert seen > 5
    assert stacks(rows, "range")[0].startswith(next(e.name for e in prof.events() if e.name.endswith(": leaf")))


@pytest.mark.parametrize("options", [dict(verbose=False), dict(with_stack=False)])
def test_call_stacks_only_on_request(tmp_path, options):
    _, rows = rows_of(opstrobe, tmp_path / "t.json", **options)
    assert not any("Call stack" in row.get("args", {}) for row in rows)


def test_call_stacks_come_back(tmp_path):
    """Read back, written again, and analysed, they change nothing."""
    prof, rows = rows_of(opstrobe, tmp_path / "t.json")
    file = opstrobe.read(tmp_path / "t.json")
    assert [event.stack for event in file.events()] == [event.stack for event in prof.events()]
    file.export_chrome_trace(tmp_path / "again.json")
    again = [row for row in json.loads((tmp_path / "again.json").read_text())["traceEvents"] if row["ph"] == "X"]
    assert [row.get("args", {}).get("Call stack") for row in again] == [
        row.get("args", {}).get("Call stack") for row in rows
    ]
    views = file.views()["call_stacks"]
    assert views == prof.views()["call_stacks"] and views["per_operator"]["aten::add"] == 1


def test_places_that_operators_are_called_from(tmp_path):
    with opstrobe.profile(with_stack=True) as prof:
        for _ in range(3):
            torch.ones(3)
        leaf()
    prof.export_chrome_trace(tmp_path / "t.json")
    counts = prof.views()["call_stacks"]
    assert counts["per_operator"]["aten::ones"] == 2 and counts["per_operator"]["aten::add"] == 1
    assert opstrobe.read(tmp_path / "t.json").views()["call_stacks"] == counts


def test_call_stacks_of_any_depth_and_name(tmp_path):
    scope = {"torch": torch}
    name = 'odd "name"\\\t' + "x" * 3000 + ".py"
    exec(compile("def down(n):\n    return down(n - 1) if n else torch.ones(1)\n", name, "exec"), scope)
    config = opstrobe._ExperimentalConfig(verbose=True)
    with opstrobe.profile(with_stack=True, experimental_config=config) as prof:
        scope["down"](200)
    path = tmp_path / "t.json"
    prof.export_chrome_trace(path)
    (stack,) = stacks(json.loads(path.read_text())["traceEvents"], "aten::ones")
    assert stack.split(";")[1:202] == [f"{name}(1): down"] * 201
