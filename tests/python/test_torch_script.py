# SPDX-License-Identifier: Apache-2.0
"""Operators of TorchScript: the lines of the script they are called from, and the modules of the script around them."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity

import opstrobe

WAYS = {"Call stack": {"with_stack": True}, "Module Hierarchy": {"with_modules": True}}
BACKWARD_FUNCTION = 1


class Inner(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.layer = nn.Linear(4, 4)

    def helper(self, x):
        return self.inner(x) * 2

    def forward(self, x):
        return self.layer(self.helper(x)).sum()


@pytest.fixture(scope="module")
def script():
    """A script that is optimized as far as it will be, and its input."""
    model, x = torch.jit.script(Outer()), torch.randn(4, 4, requires_grad=True)
    for _ in range(4):
        model(x).backward()
    return model, x


def operators(prof, path, key):
    """Name, scope and the argument `key` of each operator, in order of their start."""
    prof.export_chrome_trace(str(path))
    rows = [row for row in json.loads(path.read_text())["traceEvents"] if row.get("cat") == "cpu_op"]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    return [(row["name"], row["args"].get("Scope", 0), row["args"].get(key)) for row in rows]


def both(run, tmp_path, key, **options):
    options = options or WAYS[key]
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], **options) as theirs:
        run()
    with opstrobe.profile(**options) as ours:
        run()
    return theirs, ours, operators(theirs, tmp_path / "theirs", key), operators(ours, tmp_path / "ours", key)


@pytest.mark.parametrize("key", WAYS)
@pytest.mark.parametrize("options", [{}, {"with_stack": True, "with_modules": True}], ids=["alone", "both"])
def test_script_arguments_are_those_of_torch(script, tmp_path, key, options):
    model, x = script
    _, _, theirs, ours = both(lambda: model(x), tmp_path, key, **options)
    assert sum(text is not None for _, _, text in theirs) > 10
    assert [(name, text) for name, _, text in ours] == [(name, text) for name, _, text in theirs]
    other = "Module Hierarchy" if key == "Call stack" else "Call stack"
    assert options or other not in (tmp_path / "ours").read_text()


@pytest.mark.parametrize("key", WAYS)
def test_script_arguments_in_backward_passes(script, tmp_path, key):
    """torch asks no backward node and then hands its answers out in order to all, so that each node shifts them by one."""
    model, x = script
    loss = [model(x), model(x)]
    _, _, theirs, ours = both(lambda: loss.pop().backward(), tmp_path, key)
    assert [name for name, _, _ in ours] == [name for name, _, _ in theirs]
    asked = [text for _, scope, text in ours if scope != BACKWARD_FUNCTION]
    nodes = len(ours) - len(asked)
    assert nodes > 1
    assert sum(text is not None for text in asked) > 10
    assert asked + [None] * nodes == [text for _, _, text in theirs]


def test_stacks_of_script_operators_are_those_of_torch(script, tmp_path):
    model, x = script
    theirs, ours, _, rows = both(lambda: model(x), tmp_path, "Call stack")
    expected = [
        (event.name, event.stack) for event in theirs.events() if event.stack and event.name.startswith("aten::")
    ]
    scripted = {name for name, _, text in rows if text}
    found = [(event.name, event.stack) for event in ours.events() if event.name in scripted]
    assert [stack[-1].endswith(": <forward op>") for _, stack in expected].count(True) > 10
    assert found == expected
    file = opstrobe.read(tmp_path / "ours").events()
    assert [(event.name, event.stack) for event in file] == [(event.name, event.stack) for event in ours.events()]


def test_script_operators_group_by_line(script):
    model, x = script
    with opstrobe.profile(with_stack=True) as prof:
        model(x)
    rows = {(row.key, row.stack[0].rsplit("): ")[-1]) for row in prof.key_averages(group_by_stack_n=1) if row.stack}
    assert {("aten::relu", "forward"), ("aten::mul", "helper"), ("aten::linear", "forward")} <= rows


def test_hierarchy_with_shapes_counters_and_names(tmp_path):
    """The parts of a record do not get in each other's way."""

    @torch.jit.script
    def add(x):
        return torch.add(x, 1)

    x = torch.ones(3)
    add(x)
    with opstrobe.profile(record_shapes=True, profile_memory=True, with_modules=True, with_stack=True) as prof:
        add(x)
        torch.add(x, 2)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = [
        row["args"]
        for row in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if row["name"] == "aten::add" and row.get("cat") == "cpu_op"
    ]
    *scripted, eager = rows
    assert scripted
    assert all(row["Input Dims"] == [[3], [], []] for row in rows)
    assert {row["Module Hierarchy"] for row in scripted} == {"TOP()::add."}
    assert all(row["Call stack"].endswith(": add;") for row in scripted)
    assert not {"Module Hierarchy", "Call stack"} & eager.keys()
    assert all("test_torch_script.py:" in row["CallFrom"] for row in rows)
