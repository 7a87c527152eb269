# SPDX-License-Identifier: Apache-2.0
"""Replays of traces: what holds for any trace, and recordings of programs with something planted."""

import json
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import opstrobe
from opstrobe import _core

EVERYTHING = ".*"


def ask(trace, **changes):
    """The rows by name of the change."""
    table = json.loads(trace.query("whatif", json.dumps(changes)))["table"]
    return {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}


def event(category, name, tid, ts, dur, pid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def parse(events):
    return _core.parse_trace(json.dumps({"traceEvents": events}).encode())


@st.composite
def serial_steps(draw):
    """Steps of operators one after the other, with others in them."""
    events, now = [], 0
    for number in range(draw(st.integers(1, 4))):
        start = now
        for _ in range(draw(st.integers(1, 6))):
            now += draw(st.integers(0, 50))
            length = draw(st.integers(1, 200))
            events.append(event("cpu_op", draw(st.sampled_from(["aten::a", "aten::b", "aten::c"])), 1, now, length))
            inner = draw(st.integers(0, length))
            if inner:
                events.append(event("cpu_op", draw(st.sampled_from(["aten::d", "aten::b"])), 1, now, inner))
            now += length
        events.append(event("user_annotation", f"ProfilerStep#{number}", 1, start, now - start))
    return events


@st.composite
def device_steps(draw):
    """Steps whose operators launch kernels onto two streams, with synchronisations."""
    events, now, correlation, free = [], 0, 0, {7: 0, 9: 0}
    for number in range(draw(st.integers(1, 3))):
        start = now
        for _ in range(draw(st.integers(1, 8))):
            correlation += 1
            call, stream = draw(st.integers(1, 20)), draw(st.sampled_from([7, 9]))
            begins = max(now + draw(st.integers(1, 30)), free[stream] + draw(st.integers(0, 3)))
            length = draw(st.integers(1, 200))
            free[stream] = begins + length
            events += [
                event("cpu_op", f"aten::op{stream}", 1, now, call),
                event("cuda_runtime", "cudaLaunchKernel", 1, now, call, correlation=correlation),
                event(
                    "kernel",
                    f"gemm{stream}",
                    stream,
                    begins,
                    length,
                    0,
                    correlation=correlation,
                    device=0,
                    stream=stream,
                ),
            ]
            now += call + draw(st.integers(0, 20))
            if draw(st.booleans()):
                end = max(now + 1, *free.values()) + 2
                events.append(event("cuda_runtime", "cudaDeviceSynchronize", 1, now, end - now, correlation=0))
                now = end
        events.append(event("user_annotation", f"ProfilerStep#{number}", 1, start, now - start + 1))
        now += 1
    return events


@settings(max_examples=60, deadline=None)
@given(serial_steps())
def test_a_replay_of_one_thread_is_what_was_measured(events):
    rows = ask(parse(events), scale=[f"{EVERYTHING}=1"])
    assert rows["replayed"]["replay_error_percent"] == 0
    assert rows["replayed"]["step_us"] == rows["measured"]["step_us"]
    assert rows[f"'{EVERYTHING}' × 1"]["saved_us"] == 0


@settings(max_examples=60, deadline=None)
@given(serial_steps(), st.sampled_from(["aten::a", "aten::b", "aten::d"]), st.floats(0, 1))
def test_less_work_of_one_thread_saves_that_much(events, name, factor):
    rows = ask(parse(events), scale=[f"{name}={factor!r}"], drop=[name, EVERYTHING])
    dropped, shorter = (
        rows[f"without '{name}'"],
        next(row for key, row in rows.items() if "×" in key or f"'{name}'" in key),
    )
    assert 0 <= shorter["saved_low_us"] <= shorter["saved_us"] <= shorter["saved_high_us"]
    assert shorter["saved_us"] <= dropped["saved_us"] + 0.001
    assert dropped["saved_us"] <= rows[f"without '{EVERYTHING}'"]["saved_us"] + 0.001


@settings(max_examples=60, deadline=None)
@given(device_steps())
def test_a_replay_with_a_device_is_what_was_measured(events):
    rows = ask(parse(events), scale=[f"{EVERYTHING}=1"])
    assert rows["replayed"]["replay_error_percent"] == 0
    assert rows[f"'{EVERYTHING}' × 1"]["saved_us"] == 0


@settings(max_examples=60, deadline=None)
@given(device_steps(), st.sampled_from(["gemm7", "gemm9", "op7"]))
def test_less_work_of_a_device_never_costs_time(events, name):
    rows = ask(parse(events), drop=[name], scale=["gemm=0.5"], remove_syncs=True)
    total = sum(row["saved_us"] or 0 for row in rows.values())
    assert total >= 0
    assert rows["replayed"]["replay_error_percent"] == 0


def record(step, steps=4, **options):
    schedule = opstrobe.schedule(wait=0, warmup=1, active=steps, repeat=1)
    with opstrobe.profile(
        activities=[opstrobe.ProfilerActivity.CPU], schedule=schedule, with_stack=True, **options
    ) as prof:
        for _ in range(steps + 1):
            step()
            prof.step()
    return prof


def test_a_planted_sleep_is_what_dropping_its_line_saves():
    model = torch.nn.Linear(16, 16)

    def step():
        model(torch.ones(4, 16)).sum().backward()
        time.sleep(0.02)  # planted

    planted = step.__code__.co_firstlineno + 2
    rows = record(step).whatif(drop=f"test_whatif.py:{planted}")
    assert [row["change"] for row in rows] == ["measured", "replayed", f"without 'test_whatif.py:{planted}'"]
    assert rows[1]["replay_error_percent"] < 1
    assert rows[2]["events"] == 4
    assert 20_000 <= rows[2]["saved_us"] <= rows[1]["step_us"]


def test_dropping_a_module_drops_its_backward_pass():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh())

    def step():
        model(torch.ones(4, 64)).sum().backward()

    rows = {
        row["change"]: row
        for row in record(step, with_modules=True).whatif(drop=["Linear_0", "Tanh_0", "AddmmBackward0"])
    }
    linear, backward = rows["without 'Linear_0'"], rows["without 'AddmmBackward0'"]
    assert linear["events"] == 4 and backward["events"] > 0
    assert linear["saved_us"] > backward["saved_us"] > 0


def test_a_program_refuses_what_is_no_change():
    prof = record(lambda: torch.ones(3) + 1)
    with pytest.raises(ValueError, match="FACTOR"):
        prof.whatif(scale={"aten::add": -1})
    with pytest.raises(ValueError, match="regular expression"):
        prof.whatif(drop="(")
