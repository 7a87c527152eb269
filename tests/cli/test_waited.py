# SPDX-License-Identifier: Apache-2.0
"""How long steps waited for a CPU is the same in views, its text and Markdown, the report and the advice."""

import json
import re

import pytest

from opstrobe import _core

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def row(name, ts, dur, cat="cpu_op"):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}


def trace(waited_us):
    rows = []
    for i in range(6):
        at = 1000 * i
        rows += [row(f"ProfilerStep#{i}", at, 1000, "user_annotation"), row(LOADER, at, 600, "user_annotation")]
        rows += [row("aten::mm", at + 650, 300)]
    steps = [[i, 800_000, 1000 * waited_us, 0, 0] for i in range(6)]
    return {"machine": {"processors": 2, "steps": steps}, "traceEvents": rows}


@pytest.mark.parametrize(("waited", "much"), [(230, True), (40, False)])
def test_one_share_everywhere(opstrobe, tmp_path, waited, much):
    (tmp_path / "t.json").write_text(json.dumps(trace(waited)))
    share = waited / 1000
    views = json.loads(opstrobe("views", "--format", "json", "t.json").stdout)["steps"]["waited_for_cpu"]
    assert (views["ratio"], views["average"], views["much"]) == (pytest.approx(share), waited, much)
    advice = json.loads(opstrobe("advise", "--format", "json", "t.json").stdout)
    assert advice["findings"] and advice["base"]["waited_for_cpu_ratio"] == pytest.approx(share)
    for words in (("t.json",), ("report", "--format", "markdown", "t.json")):
        text = opstrobe(*words).stdout
        assert f"waited for a CPU: {_core.format_percent(100 * share)} of the steps' time" in text
        assert ("warning: waited" in text) == much
    expected = f"Steps waited for a CPU for {_core.format_percent(100 * share)} of their time"
    assert (" of waiting for a CPU" in advice["base"]["text"]) == (
        advice["base"]["excluded_ms"]["waits_for_cpu"] > 0.01
    ) and (expected in advice["base"]["text"]) == much
    warning = f"waited for a CPU: {_core.format_percent(100 * share)}"
    assert [finding["predicted_gain_warning"] for finding in advice["findings"]] == [
        warning if much else None for _ in advice["findings"]
    ]
    for words in (("t.json",), ("report", "--format", "markdown", "t.json"), ("advise", "t.json")):
        gains = re.findall(r"saves [^(]*\(([^)]*)\)", " ".join(opstrobe(*words).stdout.split()))
        assert len(gains) == len(advice["findings"])
        intervals = [finding["predicted_gain_interval"] for finding in advice["findings"]]
        for gain, interval in zip(gains, intervals, strict=True):
            ends = (f", {interval}" if words[0] in ("advise", "report") else "") + (f"; {warning}" if much else "")
            assert re.fullmatch(r"\d+\.\d %" + ends, gain)
    for form in ("text", "markdown"):
        assert (expected in " ".join(opstrobe("advise", "--format", form, "t.json").stdout.split())) == much
    (line,) = [
        line for line in opstrobe("views", "--format", "csv", "t.json").stdout.splitlines() if "waited_for_cpu" in line
    ]
    assert line.split(",")[3] == str(waited)


def test_missing_data_is_not_shown(opstrobe, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": trace(0)["traceEvents"]}))
    assert json.loads(opstrobe("views", "--format", "json", "t.json").stdout)["steps"]["waited_for_cpu"] is None
    assert json.loads(opstrobe("advise", "--format", "json", "t.json").stdout)["base"]["waited_for_cpu_ratio"] is None
    assert "waited for a CPU" not in opstrobe("t.json").stdout


@pytest.mark.parametrize("known", [2, 3])
def test_a_share_needs_half_of_the_steps(opstrobe, tmp_path, known):
    """The figure of few steps is not one of the steps' time."""
    waited = trace(230)
    waited["machine"]["steps"] = waited["machine"]["steps"][:known]
    (tmp_path / "t.json").write_text(json.dumps(waited))
    assert ("waited for a CPU" in opstrobe("t.json").stdout) == (known == 3)
    views = json.loads(opstrobe("views", "--format", "json", "t.json").stdout)["steps"]["waited_for_cpu"]
    assert (views is not None) == (known == 3)
    lines = opstrobe("views", "--format", "csv", "t.json").stdout.splitlines()
    assert [line.split(",")[2] for line in lines if "waited_for_cpu" in line] == [str(known)] * (known == 3)


def test_a_diff_warns_of_a_busy_machine(opstrobe, tmp_path):
    for name, waited in (("busy.json", 230), ("idle.json", 4)):
        (tmp_path / name).write_text(json.dumps(trace(waited)))
    found = json.loads(opstrobe("diff", "--format", "json", "busy.json", "idle.json").stdout)["steps"]
    assert [found[side]["waited_ratio"] for side in ("left", "right")] == pytest.approx([0.23, 0.004])
    said = (
        "warning: steps waited for a CPU: 23.0 % of their time in base, 0.40 % of their time in new; times are too long"
    )
    assert said in " ".join(opstrobe("diff", "busy.json", "idle.json").stdout.split())
    assert "waited for a CPU" not in opstrobe("diff", "idle.json", "idle.json").stdout


def contended(threads, children_share, batch_us=100):
    """Steps of a program whose loader has workers. In every second one a product takes 0.4 ms longer, because the thread
    waits for a processor."""
    rows, steps = [], []
    at = 0
    for i in range(12):
        more = 400 * (i % 2)
        rows += [
            row(f"ProfilerStep#{i}", at, 500 + batch_us + more, "user_annotation"),
            row(LOADER.replace("Single", "Multi").replace("Process", "Processing"), at, batch_us, "user_annotation"),
            row("aten::mm", at + batch_us + 50, 300 + more),
        ]
        steps.append([i, 1000 * (500 + batch_us), 1000 * more, 0, 0])
        at += 500 + batch_us + more
    machine = {
        "processors": 2,
        "threads": threads,
        "threads_share": 0.1,
        "children_share": children_share,
        "steps": steps,
    }
    return {"machine": machine, "traceEvents": rows}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("children_share", [0.8, 0.3])
def test_waits_for_processors_of_the_program_are_its_own(opstrobe, tmp_path, threads, children_share):
    own = children_share > 0.5  # else other programs mostly have the processors
    (tmp_path / "t.json").write_text(json.dumps(contended(threads, children_share)))
    views = json.loads(opstrobe("views", "--format", "json", "t.json").stdout)["steps"]["waited_for_cpu"]
    assert views["own_ratio"] == (0.9 if own else 0)
    who = "other threads and child processes of the program had it" if own else "other threads had it"
    assert views["much"] == (not own) and views["had_by"] == who.removesuffix(" had it")
    said = f"because {who}" + ("" if own else "; times are too long")
    assert said in " ".join(opstrobe("t.json").stdout.split())
    assert ("warning: waited" in opstrobe("t.json").stdout) == (not own)
    advice = json.loads(opstrobe("advise", "--format", "json", "t.json").stdout)
    assert (f"because {who}" + ("." if own else ": figures are too high.")) in advice["base"]["text"]
    found = {finding["id"]: finding for finding in advice["findings"]}
    waits_ms = 0.9 * 0.4 / 2 if own else 0  # a step; the share of the program in what half of the steps wait
    assert advice["base"]["ms"] == pytest.approx(0.6 + waits_ms, abs=0.02)
    assert ("thread-contention" in found) == (own and threads == 2)
    if "thread-contention" in found:
        assert found["thread-contention"]["predicted_gain_ms_per_step"] == pytest.approx(waits_ms, abs=0.01)
    loader_ms = 0.1 + (waits_ms if threads == 1 else 0)
    assert found["loader-bound"]["predicted_gain_ms_per_step"] == pytest.approx(loader_ms, abs=0.05)
    assert ("for CPUs that mainly the workers have" in found["loader-bound"]["evidence"]) == (own and threads == 1)


def test_the_loader_comes_first_if_steps_wait_longer_for_it(opstrobe, tmp_path):
    """With more of the CPUs for the steps, the workers would have less, and batches would come later."""
    (tmp_path / "t.json").write_text(json.dumps(contended(2, 0.8, batch_us=400)))
    (loader,) = json.loads(opstrobe("advise", "--format", "json", "t.json").stdout)["findings"]
    assert loader["id"] == "loader-bound" and "for CPUs that mainly the workers have" in loader["evidence"]
    assert loader["predicted_gain_ms_per_step"] == pytest.approx(0.4 + 0.9 * 0.4 / 2, abs=0.05)


@pytest.mark.parametrize(("waited_us", "threads"), [(400, ""), (150, " by all threads of operators")])
def test_operators_may_wait_longer_than_the_thread_of_the_steps(opstrobe, tmp_path, waited_us, threads):
    """The base excludes all of it, which is more than what steps waited according to the same page."""
    rows, steps = [], []
    for i in range(12):
        more = 400 * (i % 6 > 0)
        at = 1000 * i
        rows += [row(f"ProfilerStep#{i}", at, 600 + more, "user_annotation"), row("aten::mm", at + 150, 300 + more)]
        steps.append([i, 600_000, 1000 * waited_us * (more > 0), 0, 0])
    machine = {"processors": 2, "threads": 2, "threads_share": 0.1, "children_share": 0.3, "steps": steps}
    (tmp_path / "t.json").write_text(json.dumps({"machine": machine, "traceEvents": rows}))
    base = json.loads(opstrobe("advise", "--format", "json", "t.json").stdout)["base"]
    assert base["excluded_ms"]["waits_for_cpu"] == pytest.approx(400 * 10 / 12 / 1000, abs=0.01)
    assert f" of waiting for a CPU{threads} (6 of 12 steps are steady" in base["text"]
