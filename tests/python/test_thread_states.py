# SPDX-License-Identifier: Apache-2.0
"""What threads wait for, by samples of the kernel's view: the table of threads, and the advice about locks and the GIL."""

import json
import pathlib
import subprocess
import sys
import threading

import pytest

import opstrobe
from opstrobe import _core

STEP_US = 1000
STEPS = 8
RUNNING, READY, GIL, LOCK, SLEEPING = 0, 1, 2, 3, 6
STEP_THREAD, OTHER_THREAD = 1, 2


def command(*arguments):
    tool = pathlib.Path(sys.executable).parent / "opstrobe"
    return json.loads(subprocess.run([tool, *map(str, arguments)], check=True, capture_output=True).stdout)


def trace(state, other_state):
    """Eight steps: an operator, then 800 us in which the function itself is in a state while another thread is in `save`."""
    events, own, other = [], [], []
    calls = iter(range(1, 1000))

    def add(category, name, thread, start_us, duration_us, **arguments):
        where = {"pid": 7, "tid": thread, "ts": start_us, "dur": duration_us}
        events.append({"ph": "X", "cat": category, "name": name, **where, "args": arguments})

    def call(name, thread, start_us, duration_us, parent=None, line=None):
        number = next(calls)
        known = {} if line is None else {"Call line": line}
        add(
            "python_function",
            name,
            thread,
            start_us,
            duration_us,
            **{"Python id": number, "Python parent id": parent},
            **known,
        )
        return number

    call("train.py(10): main", STEP_THREAD, 0, STEPS * STEP_US)
    call("writer.py(3): save", OTHER_THREAD, 0, STEPS * STEP_US)
    for step in range(STEPS):
        start = step * STEP_US
        add("user_annotation", f"ProfilerStep#{step}", STEP_THREAD, start, STEP_US - 1)
        add("cpu_op", "aten::mm", STEP_THREAD, start + 10, 100)
        own += [start, start + 150, RUNNING, start + 150, start + 950, state, start + 950, start + STEP_US, RUNNING]
    other += [0, STEPS * STEP_US, other_state]
    threads = [
        {"tid": tid, "ran_ns": 1, "ready_ns": 1, "intervals": intervals}
        for tid, intervals in ((STEP_THREAD, own), (OTHER_THREAD, other), (99, [0, 500, LOCK]))
    ]
    return {
        "schemaVersion": 1,
        "with_stack": 1,
        "thread_states": {"start_ns": 0, "states": [], "threads": threads, "complete": True},
        "traceEvents": events,
    }


@pytest.fixture
def advice(tmp_path):
    def ask(*states):
        (tmp_path / "trace.json").write_text(json.dumps(trace(*states)))
        return {finding["id"]: finding for finding in opstrobe.read(tmp_path / "trace.json").advise()["findings"]}

    return ask


def test_waiting_for_a_lock_is_not_computing(advice):
    found = advice(LOCK, SLEEPING)
    assert "python-in-step" not in found
    assert found["lock-in-step"]["predicted_gain_percent"] == pytest.approx(80, abs=2)
    assert "another thread is in save (writer.py:3)" in found["lock-in-step"]["evidence"]


def test_no_holder_is_named_where_all_threads_wait(advice):
    assert "another thread is in" not in advice(LOCK, LOCK)["lock-in-step"]["evidence"]


def test_waiting_for_the_gil_names_the_line_of_the_thread_that_has_it(advice):
    found = advice(GIL, RUNNING)
    assert "python-in-step" not in found
    assert found["gil-waits"]["predicted_gain_percent"] == pytest.approx(80, abs=2)
    assert [(place["file"], place["line"]) for place in found["gil-waits"]["where"]] == [("writer.py", 3)]


def test_a_function_that_runs_is_computing(advice):
    found = advice(RUNNING, LOCK)
    assert "python-in-step" in found
    assert not {"lock-in-step", "gil-waits"} & set(found)


def test_table_says_how_long_each_thread_was_in_each_state(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace(GIL, RUNNING)))
    table = command("analyze", "threads", "--format", "json", path)["table"]
    rows = {row[0]: dict(zip(table["columns"], row)) for row in table["rows"]}
    step = rows[STEP_THREAD]
    assert (step["time_us"], step["running_us"], step["gil_us"]) == (STEPS * STEP_US, STEPS * 200, STEPS * 800)
    assert step["waits_in"] == "train.py(10): main"
    assert rows[OTHER_THREAD]["running_us"] == STEPS * STEP_US
    assert (rows[99]["name"], rows[99]["lock_us"]) == (None, 500)  # a thread without events
    for row in rows.values():
        states = [value for name, value in row.items() if name.endswith("_us") and name != "time_us"]
        assert sum(states) == row["time_us"]


@pytest.mark.parametrize(
    "damage",
    [
        7,
        {},
        {"start_ns": 0},
        {"start_ns": -5, "threads": []},
        {"start_ns": 0, "threads": [3, {"tid": 1, "intervals": [5, 1, 0, 0, 1 << 62, 0, 0, 9, 40, 2]}]},
    ],
)
def test_metadata_that_make_no_sense_are_left_out(tmp_path, damage):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**trace(LOCK, RUNNING), "thread_states": damage}))
    assert all(row[2] == 0 for row in command("analyze", "threads", "--format", "json", path)["table"]["rows"])
    assert "lock-in-step" not in {finding["id"] for finding in opstrobe.read(path).advise()["findings"]}


def states_of(tid):
    """The names of a thread's states while a sampler ran, and the time in each."""
    found = json.loads(_core.thread_states_stop() or "{}")
    times = {}
    for thread in found.get("threads", ()):
        triples = thread["intervals"]
        for start, end, state in zip(triples[::3], triples[1::3], triples[2::3]):
            assert start < end
            if thread["tid"] == tid:
                name = found["states"][state]
                times[name] = times.get(name, 0) + end - start
    return times


def sampled(body):
    """What a thread that runs `body` does, by a sampler; more than once where the machine leaves it no time for a sample."""
    if not _core.thread_states_start():
        pytest.skip("the kernel does not say what threads do")
    assert not _core.thread_states_start()  # one at a time
    _core.thread_states_stop()
    for seconds in (0.2, 0.5, 2, 5):
        done = threading.Event()
        thread = threading.Thread(target=body, args=(done,))
        _core.thread_states_start()
        thread.start()
        done_at = threading.Event()
        done_at.wait(seconds)
        done.set()
        thread.join()
        times = states_of(thread.native_id)
        if times:
            return times
    raise AssertionError("no sample in five seconds")


def test_sampler_sees_a_thread_wait_for_another():
    assert sampled(lambda done: done.wait()).get("lock", 0) > 0


def test_sampler_sees_a_thread_sleep():
    def sleep(done):
        import time

        while not done.is_set():
            time.sleep(0.1)

    assert sampled(sleep).get("sleeping", 0) > 0


def test_nothing_is_sampled_without_a_sampler():
    assert _core.thread_states_stop() is None
