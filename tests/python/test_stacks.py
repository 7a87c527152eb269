# SPDX-License-Identifier: Apache-2.0
"""Stacks of events compared with torch's: torch records with its private flag, which makes its stacks, and Opstrobe reads
the file. Then what is made of stacks: groups, the table's column, files for flame graphs."""

import collections
import contextlib
import inspect
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from xml.etree import ElementTree

import pytest
import torch
from programs import Programs
from torch.profiler import ProfilerActivity, record_function

import opstrobe
from opstrobe import EventList, FunctionEventAvg

METRIC = "self_cpu_time_total"


def custom_function(mark):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.detach() * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    with mark("custom"):
        Twice.apply(torch.ones(3, requires_grad=True)).sum().backward()


def record_with_torch(program, path):
    """The events of torch, and the file."""
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    with record_function("torch imports things at the first"):
        pass
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], with_stack=True, experimental_config=config) as prof:
        program(record_function)
    prof.export_chrome_trace(str(path))
    return prof.events()


def without_call_stacks(path, stripped):
    """The file as torch writes it without its private flag."""
    trace = json.loads(path.read_text())
    for row in trace["traceEvents"]:
        row.get("args", {}).pop("Call stack", None)
    stripped.write_text(json.dumps(trace))


@pytest.fixture(scope="module", params=["forward_backward", "training", "all_kinds_of_inputs", "custom_function"])
def recorded(request, tmp_path_factory):
    """torch's events and the files of one program: with what torch says of stacks, and without."""
    folder = tmp_path_factory.mktemp(request.param)
    program = custom_function if request.param == "custom_function" else getattr(Programs(), request.param)
    events = record_with_torch(program, folder / "verbose.json")
    without_call_stacks(folder / "verbose.json", folder / "plain.json")
    return request.param, events, opstrobe.read(folder / "verbose.json"), opstrobe.read(folder / "plain.json")


def averages_of(events, depth):
    """Torch 2.15 leaves Python functions out unless they are requested."""
    asked = "include_python_functions" in inspect.signature(events.key_averages).parameters
    return events.key_averages(group_by_stack_n=depth, **({"include_python_functions": True} if asked else {}))


def by_place(events):
    """Events by name and time. torch leaves out a call inside a call of the same name."""
    first = min(event.time_range.start for event in events)
    return {
        (event.name, *(round((at - first) * 1000) for at in (event.time_range.start, event.time_range.end))): event
        for event in events
    }


def backward_node(event):
    while event is not None and event.scope != 1:
        event = event.cpu_parent
    return event


# --- stacks --------------------------------------------------------------------------------------------------------------


@pytest.mark.torch_like("2.13", "2.15")  # torch 2.4 and 2.9 leave Python functions out of events()
def test_stacks_are_those_of_torch(recorded):
    program, theirs, *files = recorded
    for file in files:
        ours, differing = by_place(file.events()), set()
        for key, event in by_place(theirs).items():
            if ours[key].stack != event.stack:
                differing.add(backward_node(event).name)
        # torch puts the backward pass of a BatchNorm down to the operator before it, which counts batches.
        assert differing == ({"NativeBatchNormBackward0"} if program == "forward_backward" else set())
    assert sum(len(event.stack) > 3 for event in theirs) > 100 or program == "custom_function"


def test_backward_events_have_the_stack_of_their_forward_operator(recorded):
    program, _, file, _ = recorded
    forward = {event.flow_id: event for event in file.events() if event.flow_type == 1 and event.flow_start}
    nodes = [event for event in file.events() if event.flow_type == 1 and not event.flow_start]
    for node in nodes:
        assert node.stack == forward[node.flow_id].stack
        below = [*node.cpu_children]
        for event in below:
            assert event.stack == node.stack
            below += event.cpu_children
        assert any("run_backward" in frame for frame in node.cpu_parent.stack)
        assert not any("run_backward" in frame for frame in node.stack)
    assert bool(nodes) == (program != "all_kinds_of_inputs")


def test_batch_norm():
    """Where torch is wrong: the frame that called batch_norm, and not the one that counted a batch."""
    norm, x = torch.nn.BatchNorm2d(2), torch.randn(2, 2, 3, 3, requires_grad=True)
    with opstrobe.profile() as prof:
        norm(x).sum().backward()
    node = next(event for event in prof.events() if event.name == "NativeBatchNormBackward0")
    forward = next(event for event in prof.events() if event.flow_id == node.flow_id and event.flow_start)
    assert forward.name == "aten::native_batch_norm"


def test_no_stacks_without_python_functions():
    with opstrobe.profile() as prof:
        torch.ones(2).add(1)
    assert all(event.stack == [] for event in prof.events())
    assert "Source Location" not in prof.events().table()
    assert len(prof.key_averages(group_by_stack_n=5)) == len(prof.key_averages())


# --- recorded by both ----------------------------------------------------------------------------------------------------


def frame_of_both(frame):
    """What the two profilers' names have in common: no classes, and no type of a method, where torch has the first's."""
    frame = re.sub(r"(<built-in (method|function) \w+).*>", r"\1>", frame)
    return re.sub(r"(\(\d+\): ).*\.(\w+|<\w+>)$", r"\1\2", frame)


def stacks_of_operators(profile, program):
    """Up to the program: what was open at the start has another line with torch."""
    stacks = []
    for event in profile.events():
        if getattr(event, "activity_type", "cpu_op") == "cpu_op" and event.scope != 7:  # torch 2.4 says no types
            frames = [frame_of_both(frame) for frame in event.stack]
            ends = [i for i, frame in enumerate(frames) if frame.endswith(f": {program}")]
            stacks.append((event, frames[: ends[0] + 1] if ends else frames))
    return stacks


@pytest.mark.parametrize("program", Programs.NAMES)
def test_recorded_stacks_are_those_of_torch(program):
    """The second profile has no private flag."""
    run = getattr(Programs(), program)
    run(contextlib.nullcontext)
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    with torch.profiler.profile(
        activities=[ProfilerActivity.CPU], with_stack=True, experimental_config=config
    ) as theirs:
        run(contextlib.nullcontext)
    with opstrobe.profile(with_stack=True) as ours:
        run(contextlib.nullcontext)
    expected, found = stacks_of_operators(theirs, program), stacks_of_operators(ours, program)
    assert [event.name for event, _ in found] == [event.name for event, _ in expected]
    for (event, stack), (_, torch_stack) in zip(found, expected):
        node = backward_node(event)
        if node is None or node.name != "NativeBatchNormBackward0":
            assert stack == torch_stack, event.name
    assert all(stack for event, stack in found if backward_node(event) is None)


@pytest.mark.parametrize("program", ["forward_backward", "training", "nested_ranges"])
def test_recorded_time_is_all_there(program, tmp_path):
    """No private flag, no time lost, none below zero (D7, D8, D9)."""
    run = getattr(Programs(), program)
    with opstrobe.profile(with_stack=True) as prof:
        run(opstrobe.record_function)
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    stacks = collapsed(tmp_path / "stacks.txt")
    assert min(event.self_cpu_time_total for event in prof.events()) >= 0
    assert sum(stacks.values()) == round(prof.events().self_cpu_time_total * 1000)
    assert any(re.search(rf"programs\.py\(\d+\):_Programs\.{program};", stack) for stack in stacks)
    for name in {event.name for event in prof.events() if event.is_user_annotation}:
        assert any(spelled(name) in stack.split(";") for stack in stacks)
    prof.export_chrome_trace(tmp_path / "trace.json")
    opstrobe.read(tmp_path / "trace.json").export_stacks(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == (tmp_path / "stacks.txt").read_text()


@torch.jit.script
def scripted(x):
    return torch.relu(x) + 1


def test_script_operators(tmp_path):
    """The lines of a script, in a recording and in torch's files."""
    warm = [scripted(torch.ones(2)) for _ in range(4)]
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], with_stack=True) as prof:
        scripted(warm[0])
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    theirs = next(event for event in prof.events() if event.name == "aten::relu")
    file = next(event for event in opstrobe.read(tmp_path / "trace.json").events() if event.name == "aten::relu")
    assert re.search(r"test_stacks\.py\(\d+\)", theirs.stack[0])
    assert file.stack == theirs.stack
    with opstrobe.profile(with_stack=True) as prof:
        scripted(warm[0])
    ours = next(event for event in prof.events() if event.name == "aten::relu")
    assert ours.stack == theirs.stack


def test_no_stacks_while_recording(tmp_path):
    with opstrobe.profile(with_stack=True) as prof:
        with pytest.raises(RuntimeError, match="cannot export stacks: this profile is still recording"):
            prof.export_stacks(tmp_path / "x")


# --- groups ----------------------------------------------------------------------------------------------------------------


@pytest.mark.torch_like("2.13", "2.15")  # torch 2.4 and 2.9 leave Python functions out of events()
@pytest.mark.parametrize("depth", [1, 2, 5, 1000, 2**40])
def test_groups_are_those_of_torch(recorded, depth):
    program, theirs, file, _ = recorded
    expected = averages_of(theirs, depth)
    found = file.key_averages(group_by_stack_n=depth)

    def rows(averages):
        return [(row.key, tuple(row.stack), row.count) for row in averages]

    if program == "forward_backward":  # the stacks of BatchNorm
        assert len(found) > len(file.key_averages())
    else:
        assert rows(found) == rows(expected)
    assert all(len(row.stack) <= depth for row in found)


@pytest.mark.parametrize("depth", [0, -1, -(2**70), False])
def test_no_depth_is_no_grouping(recorded, depth):
    averages = recorded[2].key_averages(group_by_stack_n=depth)
    assert [(row.key, row.count) for row in averages] == [(row.key, row.count) for row in recorded[2].key_averages()]
    assert all(row.stack == [] for row in averages)
    with pytest.raises(TypeError):
        recorded[2].key_averages(group_by_stack_n="5")


def test_stacks_with_shapes_and_sums(recorded):
    events = recorded[2].events()
    for options in ({}, {"group_by_input_shapes": True}, {"group_by_overload_name": True}):
        groups = events.key_averages(group_by_stack_n=3, **options)
        keys = [(row.key, str(row.input_shapes), tuple(row.stack), row.is_user_annotation) for row in groups]
        assert len(set(keys)) == len(keys)
        assert sum(row.count for row in groups) == len(events)
        assert sum(row.self_cpu_time_total for row in groups) == pytest.approx(events.self_cpu_time_total)


# --- the table ---------------------------------------------------------------------------------------------------------------


@pytest.mark.torch_like("2.13", "2.15")  # torch 2.4 and 2.9 leave Python functions out of events()
def test_source_location(recorded):
    _, theirs, file, _ = recorded
    for width in (75, 20, 2, 0, None):
        if recorded[0] == "forward_backward":
            continue
        expected = averages_of(theirs, 3).table(max_src_column_width=width, row_limit=-1)
        found = file.key_averages(group_by_stack_n=3).table(max_src_column_width=width, row_limit=-1)
        times = re.compile(r"[-\d.]+(s|ms|us|%)")
        assert times.sub("", found).replace(" ", "") == times.sub("", expected).replace(" ", "")


def test_frames_and_flops_each_under_its_title():
    """Torch has the two the wrong way round."""
    lines = file_with_flops().key_averages(group_by_stack_n=2).table(max_name_column_width=30).split("\n")
    title, row = lines[1], next(line for line in lines if line.lstrip().startswith("aten::mm"))
    assert title.index("Source Location") < title.index("Total FLOPs")
    assert row[title.index("Source Location") :].startswith("inner.py(2): inner")
    assert row[title.index("Total FLOPs") - 1 :].strip() == "128.000"


def file_with_flops():
    rows = [
        {"ph": "X", "cat": "python_function", "name": "outer.py(1): outer", "ts": 1, "dur": 90},
        {"ph": "X", "cat": "python_function", "name": "inner.py(2): inner", "ts": 2, "dur": 80},
        {
            **{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 3, "dur": 70},
            "args": {
                "Input Dims": [[4, 4], [4, 4]],
                "Input Strides": [[4, 1], [4, 1]],
                "Input type": ["float", "float"],
                "Concrete Inputs": ["", ""],
            },
        },
    ]
    return read_text(json.dumps({"traceEvents": [{"pid": 1, "tid": 1, **row} for row in rows]}))


def read_text(text):
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        return opstrobe.read(file.name)


# --- files ---------------------------------------------------------------------------------------------------------------------


def collapsed(path):
    """The stacks of a file, read as strictly as its readers do: flamegraph.pl takes what follows the last space,
    speedscope wants digits there."""
    stacks = {}
    for line in path.read_text().splitlines():
        stack, count = re.fullmatch(r"([^ \t]+) ([1-9]\d*)", line).groups()
        assert stack not in stacks and all(stack.split(";"))
        stacks[stack] = int(count)
    return stacks


def spelled(name):
    return re.sub(r"[ ;\t\n]", "_", name)


def test_export_stacks_keeps_every_nanosecond(recorded, tmp_path):
    for file in recorded[2:]:
        file.export_stacks(tmp_path / "stacks.txt")
        stacks = collapsed(tmp_path / "stacks.txt")
        total_ns = round(file.events().self_cpu_time_total * 1000)
        # What torch's ranges subtract from functions that they overlap in part is not a time.
        negative_ns = sum(min(0, round(event.self_cpu_time_total * 1000)) for event in file.events())
        assert total_ns <= sum(stacks.values()) <= total_ns - negative_ns


def test_export_stacks_folds_wrappers(recorded, tmp_path):
    """Fewer frames, and the same time."""
    for file in recorded[2:]:
        file.export_stacks(tmp_path / "whole.txt")
        file.export_stacks(tmp_path / "folded.txt", fold_wrappers=True)
        whole, folded = collapsed(tmp_path / "whole.txt"), collapsed(tmp_path / "folded.txt")
        assert sum(whole.values()) == sum(folded.values())
        frames = [{frame for stack in stacks for frame in stack.split(";")} for stacks in (whole, folded)]
        assert any("_bootstrap" in name or "<built-in" in name or "runpy" in name for name in frames[0] - frames[1])
        assert frames[1] < frames[0]


@pytest.mark.torch_like("2.13", "2.15")  # torch 2.4 and 2.9 leave Python functions out of events()
def test_export_stacks_has_the_own_frame(recorded, tmp_path):
    """Frames of a line are those of torch's with the event itself behind; operators are under operators."""
    _, theirs, file, _ = recorded
    file.export_stacks(tmp_path / "ours.txt")
    stacks = collapsed(tmp_path / "ours.txt")
    for event in file.events():
        if event.is_python_function and event.self_cpu_time_total > 0 and not event.cpu_parent:
            assert spelled(event.name) in stacks
    own = {spelled(event.name) for event in theirs}
    assert {frame for stack in stacks for frame in stack.split(";")} <= own
    assert {stack.split(";")[-1] for stack in stacks} == {
        spelled(event.name) for event in file.events() if event.self_cpu_time_total > 0
    }
    operators = [stack for stack in stacks if stack.split(";")[-1].startswith("aten::")]
    assert operators and any(stack.split(";")[-2].startswith("aten::") for stack in operators)


def test_equal_stacks_are_one_line(tmp_path):
    file = read_text(
        json.dumps(
            {
                "traceEvents": [
                    {"ph": "X", "cat": "cpu_op", "name": name, "ts": i, "dur": 0.25, "pid": 1, "tid": i % 2}
                    for i, name in enumerate(["a b", "a;b", "c", "a\tb", "c"])
                ]
            }
        )
    )
    file.export_stacks(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "a_b 750\nc 500\n"


@pytest.mark.parametrize("name", ["x.txt", "x.speedscope.json", "x.svg"])
def test_an_empty_list_makes_an_empty_file(name, tmp_path):
    EventList().export_stacks(tmp_path / name, METRIC)
    text = (tmp_path / name).read_text()
    if name.endswith("txt"):
        assert text == ""
    elif name.endswith("svg"):
        assert ElementTree.fromstring(text).tag.endswith("svg")
    else:
        assert json.loads(text)["shared"]["frames"] == []
    with pytest.raises(FileNotFoundError):
        EventList().export_stacks(tmp_path / "no" / name, METRIC)


def test_deep_stacks_are_cut_with_a_message(tmp_path):
    deepest = 2001  # the frames of a whole stack

    def down(depth):
        if depth:
            down(depth - 1)
        else:
            torch.ones(3)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with opstrobe.profile(with_stack=True) as prof:
            down(4_000)
    finally:
        sys.setrecursionlimit(limit)
    with pytest.warns(UserWarning, match=r"stacks of more than 2000 frames are cut short at '\[truncated\]'"):
        prof.export_stacks(tmp_path / "cut")
    cut = collapsed(tmp_path / "cut")
    assert sum(cut.values()) == round(sum(event.self_cpu_time_total for event in prof.events()) * 1000)
    (leaf,) = (stack for stack in cut if stack.endswith(";[truncated];aten::empty"))
    assert leaf.count(";") == deepest
    assert max(stack.count(";") for stack in cut) == deepest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof.export_stacks(tmp_path / "whole.speedscope.json")
    (profile,) = json.loads((tmp_path / "whole.speedscope.json").read_text())["profiles"]
    opened = deepest_open = 0
    for event in profile["events"]:
        opened += 1 if event["type"] == "O" else -1
        deepest_open = max(deepest_open, opened)
    assert opened == 0 and deepest_open > 4_000
    assert profile["events"][-1]["at"] == profile["endValue"] == sum(cut.values())


def test_lists_write_their_own_events(recorded, tmp_path):
    events = recorded[2].events()
    half = events[: len(events) // 2]
    assert type(half) is EventList
    half.export_stacks(tmp_path / "half", METRIC)
    events.export_stacks(tmp_path / "whole", metric=METRIC)
    half, whole = collapsed(tmp_path / "half"), collapsed(tmp_path / "whole")
    assert half.keys() < whole.keys() and all(count <= whole[stack] for stack, count in half.items())

    averages = events.key_averages(group_by_stack_n=2)
    averages.export_stacks(tmp_path / "averages", METRIC)
    groups = collections.Counter()
    for row in averages:
        groups[";".join(spelled(frame) for frame in [*row.stack[::-1], row.key])] += round(
            row.self_cpu_time_total * 1000
        )
    assert collapsed(tmp_path / "averages") == {stack: count for stack, count in groups.items() if count > 0}


def test_device_metrics_are_empty_without_a_device(recorded, tmp_path):
    for metric in recorded[2].events().supported_export_stacks_metrics()[1:]:
        recorded[2].export_stacks(tmp_path / metric, metric)
        assert (tmp_path / metric).read_text() == ""


def test_errors(tmp_path):
    with opstrobe.profile() as prof:
        with pytest.raises(AssertionError, match="with_stack"):
            prof.export_stacks(str(tmp_path / "x"), "nothing")
    for wrong in (None, 3, "nothing", "cpu_time_total"):
        with pytest.raises(ValueError, match="metric should be one of: .*self_privateuse1_time_total"):
            prof.events().export_stacks(str(tmp_path / "x"), wrong)
    with pytest.raises(AssertionError, match="with_stack"):
        prof.export_stacks(str(tmp_path / "x"))
    with pytest.raises(AssertionError, match="must be initialized"):
        opstrobe.profile().export_stacks(str(tmp_path / "x"))
    with pytest.raises(FileNotFoundError):
        prof.events().export_stacks(tmp_path / "no" / "x", METRIC)
    with pytest.raises(IsADirectoryError):
        prof.events().export_stacks(tmp_path, METRIC)
    with pytest.raises(TypeError):
        prof.events().export_stacks(3, METRIC)
    with pytest.raises(TypeError):
        prof.events().export_stacks(str(tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def speedscope(tmp_path_factory):
    """What speedscope's own program reads from files."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("there is no node and npm to run speedscope with")
    folder = tmp_path_factory.mktemp("speedscope")
    subprocess.run(["npm", "pack", "--silent", "speedscope@1.25.0"], cwd=folder, check=True, capture_output=True)
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder)
    (bundle,) = folder.glob("package/dist/release/speedscope-*.js")

    def read(*paths):
        script = __file__.replace("test_stacks.py", "speedscope_import.cjs")
        command = ["node", script, str(bundle), *map(str, paths)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return read


def test_speedscope_reads_the_same_from_both_files(recorded, speedscope, tmp_path):
    paths = [tmp_path / "stacks.txt", tmp_path / "stacks.speedscope.json"]
    for path in paths:
        recorded[2].export_stacks(path)
    ((plain,), (own,)) = speedscope(*paths)
    expected = collapsed(paths[0])
    assert plain["stacks"] == expected
    assert own["unit"] == "nanoseconds"
    assert own["total"] == plain["total"] == sum(expected.values()) == sum(own["stacks"].values())
    frames = json.loads(paths[1].read_text())["shared"]["frames"]
    assert any(frame.keys() == {"name", "file", "line"} for frame in frames)
    assert {frame["name"] for frame in frames} == {frame for stack in own["stacks"] for frame in stack.split(";")} | {
        frame["name"] for frame in frames if ";" in frame["name"]
    }


def test_flamegraph_pl_draws_every_frame(recorded, tmp_path):
    """Brendan Gregg's own script, which Debian has in libdevel-nytprof-perl."""
    script = shutil.which("flamegraph.pl") or "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
    if not shutil.which("perl") or not os.path.exists(script):
        pytest.skip("there is no flamegraph.pl")
    recorded[2].export_stacks(tmp_path / "stacks.txt")
    command = ["perl", script, "--countname=ns", "--minwidth=0", tmp_path / "stacks.txt"]
    drawn = subprocess.run(command, check=True, capture_output=True, text=True)
    assert drawn.stderr == ""
    expected = collections.Counter()
    for stack, ns in collapsed(tmp_path / "stacks.txt").items():
        frames = stack.translate(str.maketrans("<>", "()")).split(";")  # as the script has them
        for depth in range(len(frames) + 1):
            expected[tuple(frames[:depth])] += ns
    titles = [box.text for box in ElementTree.fromstring(drawn.stdout).iterfind(".//{*}g/{*}title")]
    boxes = [re.fullmatch(r"(.*) \(([\d,]+) ns, [\d.]+%\)", title).groups() for title in titles]
    assert sorted((name, int(ns.replace(",", ""))) for name, ns in boxes) == sorted(
        (stack[-1] if stack else "all", ns) for stack, ns in expected.items()
    )


def test_picture(recorded, tmp_path):
    from xml.etree import ElementTree

    recorded[2].export_stacks(tmp_path / "flame.svg")
    root = ElementTree.parse(tmp_path / "flame.svg").getroot()
    boxes = [group for group in root.findall(".//{*}g") if group.find("{*}title") is not None]
    assert len(boxes) > 10
    for box in boxes:
        rect = box.find("{*}rect")
        assert float(rect.get("x")) >= 9.9 and float(rect.get("x")) + float(rect.get("width")) <= 1190.2
        assert re.search(r"\([\d.]+ (ns|µs|ms|s), [\d.]+ %\)$", box.find("{*}title").text)
    assert not root.findall(".//{*}script")


# --- pickles, merged lists -----------------------------------------------------------------------------------------------------


def test_pickled_stacks(recorded):
    file = recorded[2]
    for event in (file.events()[5], file.events()[-1]):
        assert pickle.loads(pickle.dumps(event)).stack == event.stack
    averages = file.key_averages(group_by_stack_n=4)
    again = pickle.loads(pickle.dumps(averages))
    assert [(row.key, row.stack, row.count) for row in again] == [(row.key, row.stack, row.count) for row in averages]
    assert again.table(row_limit=-1) == averages.table(row_limit=-1)
    for row in [*averages][::7]:
        one = pickle.loads(pickle.dumps(row))
        assert (one.key, one.stack, one.cpu_time_total) == (row.key, row.stack, row.cpu_time_total)
    total = FunctionEventAvg()
    total += averages[3]
    assert pickle.loads(pickle.dumps(total)).stack == averages[3].stack


def test_lists_of_several_traces(recorded, tmp_path):
    """Rows of two files in one list keep their stacks; a row that is there twice stays as it is."""
    one, other = recorded[2].key_averages(group_by_stack_n=4), recorded[3].key_averages(group_by_stack_n=4)
    both = EventList([*one, *other, one[0], *one])
    both.table(row_limit=1)
    both.export_stacks(tmp_path / "x", METRIC)
    assert [row.stack for row in both][: len(one)] == [row.stack for row in one]
    assert [row.stack for row in both][len(one) : len(one) + len(other)] == [row.stack for row in other]
    events = EventList([*recorded[2].events(), *recorded[3].events()])
    stacks = [row.stack for row in events.key_averages(group_by_stack_n=4)]
    assert sorted(stacks[: len(one)]) == sorted(row.stack for row in one)
