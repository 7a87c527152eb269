# SPDX-License-Identifier: Apache-2.0
"""Traces of very deep calls: the cost of an event does not grow with the number of events around it."""

import json
import resource
import signal

import pytest

DEPTH = 150_000
CPU_S = 12  # Linear work takes at most four seconds, a walk up for each event 11 billion steps, more than that.

# By kind of event: category, name and arguments of the call at a depth.
KINDS = {
    "python": lambda i: ("python_function", f"/home/me/train.py({i % 90 + 1}): f", {"Python id": i + 1}),
    "torch": lambda i: ("python_function", f"/lib/torch/nn.py({i % 90 + 1}): f", {"Python id": i + 1}),
    "module": lambda i: (
        "python_function",
        f"nn.Module: Block_{i % 90}",
        {"Python id": i + 1, "Python module id": i % 90},
    ),
    "annotation": lambda i: ("user_annotation", f"part {i % 90}", {}),
    "step": lambda i: ("user_annotation", f"ProfilerStep#{i}", {}),
    "operator": lambda i: (
        "cpu_op",
        "aten::linear" if i % 2 else "aten::copy_",
        {"Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]},
    ),
}
COMMANDS = {
    "views": ["views", "TRACE"],
    "advise": ["advise", "TRACE"],
    "modules": ["modules", "TRACE"],
    "lines": ["lines", "TRACE"],
    "memory": ["memory", "TRACE"],
    "roofline": ["roofline", "--by", "line", "TRACE"],
    "diff": ["diff", "TRACE", "TRACE"],
    "stacks": ["convert", "TRACE", "out.folded"],
    "report": ["report", "TRACE", "-o", "out.html"],
}


def _events(kind):
    """One call within the other, each with an allocation and a kernel that it launches."""
    for i in range(DEPTH):
        at = {"ph": "X", "pid": 1, "tid": 1}
        category, name, args = KINDS[kind](i)
        yield {**at, "cat": category, "name": name, "ts": 4 * i, "dur": 8 * DEPTH - 5 * i, "args": args}
        allocation = {
            "Addr": (i + 1) * 64,
            "Bytes": 64,
            "Total Allocated": (i + 1) * 64,
            "Device Type": 0,
            "Device Id": -1,
        }
        yield {**at, "ph": "i", "name": "[memory]", "ts": 4 * i + 1, "args": allocation}
        launch = {"correlation": i + 1}
        yield {**at, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 4 * i + 2, "dur": 1, "args": launch}
        kernel = {"cat": "kernel", "name": f"kernel_{i % 90}", "args": {**launch, "device": 0, "stream": 7}}
        yield {**at, **kernel, "pid": 0, "tid": 7, "ts": 4 * i + 3, "dur": 2}


@pytest.fixture(scope="module", params=KINDS)
def deep_trace(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "trace.json"
    path.write_text(
        '{"schemaVersion":1,"traceEvents":[\n' + ",\n".join(map(json.dumps, _events(request.param))) + "\n]}\n"
    )
    yield path
    path.unlink()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_cost_of_an_event_does_not_depend_on_its_depth(opstrobe, deep_trace, command):
    words = [str(deep_trace) if word == "TRACE" else word for word in COMMANDS[command]]
    done = opstrobe(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S)))
    assert done.returncode not in (-signal.SIGXCPU, -signal.SIGKILL), f"more than {CPU_S} s of CPU time"
    assert done.returncode == 0, done.stderr
