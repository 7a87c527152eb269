# SPDX-License-Identifier: Apache-2.0
"""performance_events: what the kernel counts in each operator. Software events are to be had nearly everywhere; hardware
events are not on virtual machines, and there the refusal is what is tested."""

import json
import threading
import warnings

import pytest
import torch

import opstrobe
from opstrobe import _ExperimentalConfig, profile

HARDWARE = ["cycles", "instructions"]


def counting(*names):
    return _ExperimentalConfig(performance_events=list(names))


def rows_of(prof, path):
    prof.export_chrome_trace(str(path))
    with open(path) as file:
        return [row for row in json.load(file)["traceEvents"] if row.get("cat") == "cpu_op"]


def test_performance_events_pagefaults(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile(experimental_config=counting("pagefaults", "task-clock"), record_shapes=True) as prof:
            torch.ones(1 << 24)  # 64 MB, never touched before: few faults where the kernel gives large pages
            torch.ones(1)
    prof.profiler.trace.check()
    large, small = [event for event in prof.events() if event.name == "aten::ones"]
    assert large.performance_counters["pagefaults"] > small.performance_counters["pagefaults"] + 2
    assert all(event.performance_counters["task-clock"] >= 0 for event in prof.events())
    (fill,) = [event for event in large.cpu_children if event.name == "aten::fill_"]
    assert fill.performance_counters["pagefaults"] <= large.performance_counters["pagefaults"]
    assert large.kwinputs == {} and large.input_shapes
    rows = rows_of(prof, tmp_path / "trace.json")
    assert [row["args"]["pagefaults"] for row in rows] == [e.performance_counters["pagefaults"] for e in prof.events()]
    again = opstrobe.read(tmp_path / "trace.json")
    assert [e.performance_counters for e in again.events()] == [e.performance_counters for e in prof.events()]


def test_performance_events_on_every_thread():
    def work():
        torch.ones(10)

    with profile(
        experimental_config=_ExperimentalConfig(performance_events=["pagefaults"], profile_all_threads=True)
    ) as prof:
        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    counted = [event for event in prof.events() if event.name == "aten::ones"]
    assert len(counted) == 2 and all(event.performance_counters["pagefaults"] >= 0 for event in counted)


def test_refused_performance_events_lose_no_operator():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(experimental_config=counting(*HARDWARE, "pagefaults")) as prof:
            torch.ones(2)
    events = prof.events()
    assert [event.name for event in events] == ["aten::ones", "aten::empty", "aten::fill_"]
    refused = [str(warning.message) for warning in caught]
    counted = set(events[0].performance_counters)
    assert "pagefaults" in counted
    if counted == {*HARDWARE, "pagefaults"}:
        assert refused == []
    else:
        (text,) = refused
        assert all((name in text) != (name in counted) for name in HARDWARE)


def test_unknown_performance_event():
    prof = profile(experimental_config=counting("pagefaults", "nonsense"))
    with pytest.raises(ValueError, match="'nonsense'; known are cycles"):
        prof.start()
    with pytest.raises(ValueError, match="at most 8"):
        profile(experimental_config=counting(*["pagefaults"] * 9)).start()
    with profile() as prof:
        torch.ones(2)
    assert all(event.performance_counters == {} for event in prof.events())


def test_performance_events_with_torch_config_and_ids(tmp_path):
    observer = opstrobe.ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    config = torch.profiler._ExperimentalConfig(performance_events=["pagefaults"])
    with profile(experimental_config=config, execution_trace_observer=observer) as prof:
        torch.ones(2)
        with opstrobe.record_function("x"):
            pass
    rows = rows_of(prof, tmp_path / "trace.json")
    assert all(row["args"]["Record function id"] > 0 and row["args"]["pagefaults"] >= 0 for row in rows)
    prof.profiler.trace.check()


def test_backward_and_range_names_are_counted():
    x = torch.ones(3, requires_grad=True)
    with profile(experimental_config=counting("pagefaults")) as prof:
        (x * 2).sum().backward()
    assert any(event.name == "MulBackward0" and "pagefaults" in event.performance_counters for event in prof.events())
