# SPDX-License-Identifier: Apache-2.0
"""The same program, recorded for two steps and for five, differs by nothing: every figure of a diff is of one step."""

import csv
import io
import json
import pathlib
import re

import pytest

STEP = 1000
RECORDED = pathlib.Path(__file__).resolve().parents[2] / "web" / "tests" / "traces" / "train.pt.trace.json.gz"


def row(name, ts, dur, cat="cpu_op", tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def memory(ts, size, address, total):
    args = {
        "Bytes": size,
        "Addr": address,
        "Total Allocated": total,
        "Total Reserved": 0,
        "Device Type": 0,
        "Device Id": -1,
    }
    return {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "args": args,
    }


def link(number, ts, to):
    ends = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": 1, "tid": 1}
    return [{"ph": "s", "ts": ts, **ends}, {"ph": "f", "bp": "e", "ts": to, **ends}]


def step(i, marked):
    at = 100 + STEP * i
    module = {"Python module id": 0, "Python id": 10 * i + 1}
    rows = [
        row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 100, "user_annotation"),
        row("nn.Module: Net_0", at + 150, 200, "python_function", **module),
        row("aten::linear", at + 160, 100, **{"External id": 100 * i + 1}),
        row("cudaLaunchKernel", at + 170, 10, "cuda_runtime", correlation=i + 1, **{"External id": 100 * i + 1}),
        {**row("gemm", at + 200, 300, "kernel", 7, correlation=i + 1, device=0, stream=7), "pid": 0},
        row("autograd::engine::evaluate_function: LinearBackward0", at + 500, 150),
        row("Optimizer.step#SGD.step", at + 800, 200, "user_annotation"),
        row("aten::add_", at + 850, 50),
        *link(i + 1, at + 160, at + 500),
        memory(at + 165, 512, 4096, 512),
        memory(at + 700, -512, 4096, 0),
    ]
    return [row(f"ProfilerStep#{i}", at, STEP, "user_annotation"), *rows] if marked else rows


@pytest.fixture(params=[True, False], ids=["marked", "derived"])
def traces(request, tmp_path):
    for count in (2, 5):
        rows = [each for i in range(count) for each in step(i, request.param)]
        (tmp_path / f"{count}.json").write_text(json.dumps({"traceEvents": rows}))
    return "2.json", "5.json"


def test_every_figure_is_of_one_step(opstrobe, traces):
    found = json.loads(opstrobe("diff", "--format", "json", *traces).stdout)
    assert [found["steps"][side]["per_step_divisor"] for side in ("left", "right")] == [2, 5]
    assert found["steps"]["change_ratio"] == 0 and not found["steps"]["regression"]
    for name, category in found["steps"]["categories"].items():
        assert category["left"] == category["right"], name
    for table in ("parts", "modules", "operators", "kernels"):
        assert found[table], table
        for each in found[table]:
            assert each["left"]["per_step"] == pytest.approx(each["right"]["per_step"]), (table, each["name"])
    parts = {part["name"]: part["left"]["per_step"]["host_duration"] for part in found["parts"]}
    assert parts == {
        "_SingleProcessDataLoaderIter.__next__": 100,
        "Net_0": 200,
        "Net_0.backward": 150,
        "Optimizer.step": 200,
    }
    assert {module["name"] for module in found["modules"]} == {"Net_0", "Net_0, backward"}
    (cpu,) = found["memory"]
    assert (
        cpu["left"]["peak"]
        == cpu["right"]["peak"]
        == cpu["left"]["allocated_per_step"]
        == cpu["right"]["allocated_per_step"]
        == 512
    )


def test_text_and_csv_say_so(opstrobe, traces):
    text = opstrobe("diff", *traces).stdout
    changes = re.findall(r"(\S+) %$", text, re.MULTILINE)
    assert len(changes) > 8 and set(changes) == {"0"}
    assert not re.search("^(modules|kernels) +base", text, re.MULTILINE)  # nothing changed in them
    assert "peak of CPU       512 B  512 B" in text
    rows = list(csv.DictReader(io.StringIO(opstrobe("diff", "--format", "csv", *traces).stdout)))
    assert len(rows) > 8 and {each["change_percent"] for each in rows} == {"0"}
    assert {"in the steps", "module", "kernel"} <= {each["view"] for each in rows}


def test_text_has_host_times_next_to_those_of_a_device(opstrobe, traces, tmp_path):
    """A module that takes longer on the host alone is among the changes."""
    rows = json.loads((tmp_path / "5.json").read_text())["traceEvents"]
    for each in rows:
        if each["name"] == "nn.Module: Net_0":
            each["dur"] += 40
    (tmp_path / "slow.json").write_text(json.dumps({"traceEvents": rows}))
    text = opstrobe("diff", "5.json", "slow.json").stdout
    assert re.search("^in the steps, device time if any +base +new", text, re.MULTILINE)
    (parts,) = re.findall("^in the steps, CPU time .*\n((?:.+\n)+)", text, re.MULTILINE)
    assert re.search(r"^Net_0 +200 µs +240 µs +\+20.0 %$", parts, re.MULTILINE)
    (modules,) = re.findall("^modules, CPU time .*\n((?:.+\n)+)", text, re.MULTILINE)
    assert re.fullmatch(r"Net_0 +200 µs +240 µs +\+20.0 %\n", modules)


@pytest.mark.parametrize("metric", ["cpu", "device"])
def test_each_stack_takes_as_long(opstrobe, traces, tmp_path, metric):
    done = opstrobe("diff", *traces, "--flame", "change.folded", "--metric", metric)
    assert "wrote change.folded" in done.stderr
    lines = [line.rsplit(" ", 2) for line in (tmp_path / "change.folded").read_text().splitlines()]
    assert lines and all(before == now != "0" for _, before, now in lines)
    opstrobe("diff", *traces, "--flame", "change.svg")
    assert (tmp_path / "change.svg").read_text().startswith("<svg")


def test_modules_have_their_paths(opstrobe, tmp_path):
    assert opstrobe("diff", RECORDED, RECORDED, "--flame", "change.folded").returncode == 0
    shown = set(re.findall(r"nn\.Module:_([^; ]+)", (tmp_path / "change.folded").read_text()))
    table = json.loads(opstrobe("modules", "--format", "json", RECORDED).stdout)["table"]
    paths = {row[table["columns"].index("path")] for row in table["rows"]}
    assert len(shown) > 2 and shown <= paths
    found = json.loads(opstrobe("diff", "--format", "json", RECORDED, RECORDED).stdout)
    assert {row["name"].removesuffix(", backward") for row in found["modules"]} <= paths


def test_a_flame_graph_of_another_format_is_refused(opstrobe, traces):
    for name in ("change.speedscope.json", "change.json", "change"):
        done = opstrobe("diff", *traces, "--flame", name)
        assert done.returncode == 2
        assert f"invalid file name '{name}'" in done.stderr


def test_a_change_is_seen(opstrobe, tmp_path):
    for name, slower in (("a.json", 0), ("b.json", 150)):
        rows = [each for i in range(3) for each in step(i, True)]
        for each in rows:
            if each.get("name") == "gemm":
                each["dur"] += slower
            if each.get("name") == "[memory]" and slower:
                each["args"]["Bytes"] *= 2
        (tmp_path / name).write_text(json.dumps({"traceEvents": rows}))
    lines = [line.split() for line in opstrobe("diff", "a.json", "b.json").stdout.splitlines()]
    net = ["Net_0", "300", "µs", "450", "µs", "+50.0", "%"]
    assert lines.count(net) == 2  # of the parts and of the modules
    assert ["gemm", *net[1:]] in lines
    assert ["peak", "of", "CPU", "512", "B", "1.00", "KiB", "+100", "%"] in lines


def test_the_median_is_that_of_views_to_the_nanosecond(opstrobe, tmp_path):
    """Times since 1970 do not fit into a double to the nanosecond: lengths are taken before they become one."""
    rows = [row(f"ProfilerStep#{i}", 2000 * i + 0.001 * i, 1000.101 + 0.103 * i, "user_annotation") for i in range(5)]
    path = tmp_path / "late.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": rows}))
    views = json.loads(opstrobe("views", "--format", "json", path).stdout)["steps"]
    diff = json.loads(opstrobe("diff", "--format", "json", path, path).stdout)["steps"]
    assert views["median"] == diff["left"]["median"] == 1000.307
    assert views["p95"] == pytest.approx(1000.4924, abs=1e-9)


def test_a_slow_first_step_is_in_no_mean(opstrobe, tmp_path):
    """The same program for two and for five steps, of which the first warms up and takes four times as long."""
    for count in (2, 5):
        rows = []
        for i in range(count):
            at, long = (4000 + 1000 * i, 1000) if i else (1000, 4000)
            rows.append(row(f"ProfilerStep#{i}", at, long, "user_annotation"))
            module = {"Python module id": 0, "Python id": 10 * i + 1}
            rows.append(row("nn.Module: Net_0", at, long - 100, "python_function", **module))
            rows.append(row("aten::mm", at + 10, long - 200))
            rows.append(row("cudaLaunchKernel", at + 20, 10, "cuda_runtime", correlation=i + 1))
            kernel = row("gemm", at + 50, long // 2, "kernel", 7, correlation=i + 1, device=0, stream=7)
            rows.append({**kernel, "pid": 0})
            rows += [memory(at + 15, 512 * (1 if i else 9), 4096, 512), memory(at + long - 120, -512, 4096, 0)]
        (tmp_path / f"{count}.json").write_text(json.dumps({"traceEvents": rows}))
    views = json.loads(opstrobe("views", "--format", "json", "5.json").stdout)["steps"]
    assert views["apart"] == "0" and views["breakdown"]["average"]["total"] == 1000
    assert views["average"]["total"] == 1600  # the plugin's mean
    text = opstrobe("views", "5.json").stdout
    assert "5 steps: median 1.00 ms, mean 1.00 ms, " in text
    assert "\nthe first step, 0, takes 4.00 ms; median, mean and p95 leave it out\n" in text
    rows = list(csv.DictReader(io.StringIO(opstrobe("views", "--format", "csv", "5.json").stdout)))
    counted = [
        row["calls"] for row in rows if (row["view"], row["name"]) in (("average step", "total"), ("steps", "median"))
    ]
    assert counted == ["4", "4"]
    diff = json.loads(opstrobe("diff", "--format", "json", "2.json", "5.json").stdout)
    assert [diff["steps"][side]["median"] for side in ("left", "right")] == [1000, 1000]
    text = opstrobe("diff", "2.json", "5.json").stdout
    assert "The first step of base takes 4.00 ms and is left out.\n" in text
    assert "no verdict" in text  # two steps without the first
    changes = re.findall(r"([+-]?[\d.]+) %$", text, re.MULTILINE)
    assert len(changes) > 5 and not [change for change in changes if abs(float(change)) > 0]
    opstrobe("diff", "--flame", "change.folded", "2.json", "5.json")
    for line in (tmp_path / "change.folded").read_text().splitlines():
        before, now = line.rsplit(" ", 2)[1:]
        assert before == now, line
    plugin = json.loads(opstrobe("views", "--rules", "tensorboard", "--format", "json", "5.json").stdout)["steps"]
    assert plugin["apart"] is None and plugin["breakdown"]["average"]["total"] == 1600


def test_iterations_of_a_loop_are_not_compared_with_marked_steps(opstrobe, tmp_path):
    """A program that trains two or five steps and then generates has words as its steps in one case, and training steps in the other."""
    marked = [row(f"ProfilerStep#{i}", 1000 * i, 1000, "user_annotation") for i in range(4)]
    calls = [row("train.py(5): word", 100 * i, 90, "python_function") for i in range(8)]
    loop = [row("train.py(1): main", 0, 900, "python_function"), *calls]
    loop += [row("aten::mm", 100 * i + 10, 70) for i in range(8)]
    marked += [row("aten::mm", 1000 * i + 10, 900) for i in range(4)]
    for name, rows in (("marked", marked), ("loop", loop)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"traceEvents": rows}))
    text = opstrobe("diff", "loop.json", "marked.json").stdout
    assert "no verdict: before, a step is an iteration of a loop, and now it is not\n" in text
    diff = json.loads(opstrobe("diff", "--format", "json", "marked.json", "loop.json").stdout)["steps"]
    assert diff["undecided"] and not diff["regression"]
    assert diff["no_verdict"] == "now a step is an iteration of a loop, and before it was not"
    diff = json.loads(opstrobe("diff", "--format", "json", "marked.json", "marked.json").stdout)["steps"]
    assert (diff["undecided"], diff["no_verdict"]) == (False, None)


def test_marks_in_iterations_are_not_parts_of_them(opstrobe, tmp_path):
    """Marks with little of the work do not count as steps; what is in them is part of the iterations, as what is not."""
    rows = [row("train.py(1): main", 0, 900, "python_function")]
    for i in range(8):
        rows.append(row("train.py(5): word", 100 * i, 90, "python_function"))
        rows.append(row("Optimizer.step#SGD.step", 100 * i + 12, 8, "user_annotation"))
        rows.append(row("aten::mm", 100 * i + 40, 45))
        if i < 4:
            rows.append(row(f"ProfilerStep#{i}", 100 * i + 10, 12, "user_annotation"))
    (tmp_path / "marks.json").write_text(json.dumps({"steps_found_by": "optimizer", "traceEvents": rows}))
    diff = json.loads(opstrobe("diff", "--format", "json", "marks.json", "marks.json").stdout)
    assert diff["steps"]["left"]["steps"] == 8
    assert not [part["name"] for part in diff["parts"] if "ProfilerStep" in part["name"]]
    assert [
        part["left"]["per_step"]["host_duration"] for part in diff["parts"] if part["name"] == "Optimizer.step"
    ] == [8]


def test_slow_steps_do_not_turn_marks_into_iterations(opstrobe, tmp_path):
    """Steps that a busy machine delays are still those of the loop that the marks are of, as in a recording without delays."""
    for name, slow in (("usual", 100), ("delayed", 3000)):
        rows, at = [], 0
        for i in range(10):
            long = slow if i == 4 else 100
            rows.append(row("train.py(5): train_batch", at, long - 10, "python_function"))
            rows.append(row("aten::mm", at + 10, long - 30))
            rows.append(row(f"ProfilerStep#{i}", at + 5, long, "user_annotation"))
            at += long
        rows.append(row("train.py(1): main", 0, at, "python_function"))
        (tmp_path / f"{name}.json").write_text(json.dumps({"steps_found_by": "optimizer", "traceEvents": rows}))
        steps = json.loads(opstrobe("views", "--format", "json", f"{name}.json").stdout)["steps"]
        assert (steps["from"], steps["rows"][1]["total"]) == ("marks", 100), name
    assert "no verdict" not in opstrobe("diff", "usual.json", "delayed.json").stdout


def test_an_operator_in_nested_steps_counts_once(opstrobe, tmp_path):
    """A step that contains others, as of two profilers, has their operators as a part of itself."""
    rows = [row(f"ProfilerStep#{i}", 10 * i, 1000 - 20 * i, "user_annotation") for i in range(4)]
    rows += [
        row("aten::mm", 100, 200),
        row("ProfilerStep#4", 2000, 1000, "user_annotation"),
        row("aten::mm", 2100, 300),
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    (mm,) = json.loads(opstrobe("diff", "--format", "json", "t.json", "t.json").stdout)["operators"]
    assert (mm["left"]["calls"], mm["left"]["host_total"]) == (2, 500)


def test_steps_of_different_sources_or_loops_are_not_compared(opstrobe, tmp_path):
    """Iterations of a loop compare with those of the same loop, also after an edit above it."""

    def recorded(name, function, *, line=1):
        rows = [row(f"train.py({line}): main", 0, 900, "python_function")]
        rows += [row(f"train.py({line + 9}): {function}", 100 * i, 90, "python_function") for i in range(8)]
        rows += [row("aten::mm", 100 * i + 10, 70) for i in range(8)]
        (tmp_path / name).write_text(json.dumps({"traceEvents": rows}))

    recorded("words.json", "word")
    recorded("edited.json", "word", line=4)
    recorded("batches.json", "train_batch")
    for name, names in (
        ("marked", ["ProfilerStep#{}", "aten::mm"]),
        ("stepped", ["Optimizer.step#SGD.step", "aten::mm"]),
    ):
        rows = [
            row(each.format(i), 1000 * i, 900, "user_annotation" if "#" in each else "cpu_op")
            for i in range(4)
            for each in names
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps({"traceEvents": rows}))
    assert "no verdict" not in opstrobe("diff", "words.json", "edited.json").stdout
    text = opstrobe("diff", "words.json", "batches.json").stdout
    assert "no verdict: the steps are iterations of different loops\n" in text and "no regression" not in text
    text = opstrobe("diff", "marked.json", "stepped.json").stdout
    assert "no verdict: the steps have different sources, which 'opstrobe info' names\n" in text
