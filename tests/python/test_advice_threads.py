# SPDX-License-Identifier: Apache-2.0
"""What other threads wait for is none of the steps' time: a kernel of Jupyter has one that sleeps all along."""

import json

import pytest

import opstrobe

STEP_US = 1000


def trace(sleeping_thread):
    """Eight steps with an operator each on thread 1, and a sleep in each on some thread."""
    events = []

    def add(category, name, thread, start_us, duration_us, **args):
        events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread, "ts": start_us, "dur": duration_us}
            | {"args": args}
        )

    add("python_function", "train.py(1): main", 1, 0, 8 * STEP_US, **{"Python id": 1, "Python parent id": None})
    add("python_function", "poll.py(1): main", 2, 0, 8 * STEP_US, **{"Python id": 2, "Python parent id": None})
    for number in range(8):
        start = number * STEP_US
        add("user_annotation", f"ProfilerStep#{number}", 1, start, STEP_US - 1)
        add("cpu_op", "aten::mm", 1, start + 10, 100)
        add(
            "python_function",
            "<built-in function sleep>",
            sleeping_thread,
            start + 200,
            700,
            **{"Python id": 3 + number, "Python parent id": sleeping_thread},
        )
    return json.dumps({"schemaVersion": 1, "with_stack": 1, "traceEvents": events})


@pytest.mark.parametrize("thread, found", [(1, True), (2, False)])
def test_only_the_threads_that_work_are_asked_what_they_wait_for(tmp_path, thread, found):
    path = tmp_path / "trace.json"
    path.write_text(trace(thread))
    advice = opstrobe.read(path).advise()
    assert "waiting-in-step" in advice["checked"]
    assert ("waiting-in-step" in [finding["id"] for finding in advice["findings"]]) == found
