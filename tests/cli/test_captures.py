# SPDX-License-Identifier: Apache-2.0
"""Captures of CUDA graphs and what warms up before them do not count as steps, whatever the program's functions are called: not in the commands, and not
in advice."""

import json

import pytest

FORWARD = "sglang/srt/model_executor/model_runner.py(900): forward"
EXECUTE = "vllm/v1/worker/gpu_model_runner.py(900): execute_model"
# The function that captures one graph, the one that runs the model, and the one that serves a request.
PROGRAMS = {
    "a program": ("serve.py(10): capture_one", "serve.py(20): forward", "serve.py(40): decode"),
    "SGLang": ("sglang/srt/model_executor/cuda_graph_runner.py(500): capture_one_batch_size", FORWARD, FORWARD),
    "SGLang, speculative": (
        "sglang/srt/speculative/eagle_draft_cuda_graph_runner.py(200): capture_one_batch_size",
        FORWARD,
        FORWARD,
    ),
    "another runner": ("sglang/srt/graphs/runner.py(200): record_one", FORWARD, FORWARD),
    "vLLM": ("vllm/v1/worker/gpu/cudagraph_utils.py(10): capture_one", EXECUTE, EXECUTE),
}
CAPTURES, SERVED, SERVED_US = 12, 14, 900


class Trace:
    def __init__(self):
        self.rows, self.correlation = [], 0

    def row(self, cat, name, ts, dur, tid=1, pid=1, **args):
        self.rows.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )

    def function(self, name, ts, dur):
        self.row("python_function", name, ts, dur)

    def call(self, name, ts):
        self.correlation += 1
        self.row("cuda_runtime", name, ts, 5, correlation=self.correlation)

    def kernel(self, ts, dur, **args):
        self.row("kernel", "gemm", ts, dur, 7, 0, correlation=self.correlation, device=0, stream=7, **args)

    def forward(self, name, ts, runs):
        """Five products in 2.1 ms; during a capture they start nothing."""
        self.function(name, ts, 2100)
        for at in range(ts + 20, ts + 2000, 400):
            self.row("cpu_op", "aten::mm", at, 380)
            self.call("cudaLaunchKernel", at + 5)
            if runs:
                self.kernel(at + 10, 360)

    def mark(self, begins, ts, calls):
        if calls:
            self.call("cudaStreamBeginCapture" if begins else "cudaStreamEndCapture", ts)
        else:
            self.function(f"torch/cuda/graphs.py(80): {'capture_begin' if begins else 'capture_end'}", ts, 8)

    def replay(self, ts):
        self.row("cpu_op", "aten::copy_", ts + 20, 50)
        self.call("cudaGraphLaunch", ts + 100)
        for node in range(5):
            self.kernel(ts + 120 + node * 150, 140, **{"graph id": 5, "graph node id": (5 << 32) + node})

    def write(self, path):
        path.write_text(json.dumps({"traceEvents": self.rows}))


def capture_loop(trace, captures, forward, calls, *, replays):
    """Captures a graph for each of twelve sizes, after two passes that warm up."""
    for ts in range(100, CAPTURES * 10000, 10000):
        trace.function(captures, ts, 9000)
        trace.forward(forward, ts + 50, runs=True)
        trace.forward(forward, ts + 2250, runs=True)
        trace.mark(True, ts + 4450, calls)
        trace.forward(forward, ts + 4470, runs=False)
        trace.mark(False, ts + 6600, calls)
        if replays:
            trace.replay(ts + 6700)


def value(process):
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.parametrize("calls", [True, False], ids=["calls of the runtime", "functions of torch"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_captures_are_no_steps(opstrobe, tmp_path, program, calls):
    captures, forward, serve = PROGRAMS[program]
    trace, start = Trace(), CAPTURES * 10000
    trace.function("serve.py(1): main", 0, start + SERVED * 1000)
    capture_loop(trace, captures, forward, calls, replays=False)
    for ts in range(start, start + SERVED * 1000, 1000):
        trace.function(serve, ts, SERVED_US)
        trace.replay(ts)
    trace.write(tmp_path / "t.json")
    steps = value(opstrobe("views", "--format", "json", "t.json", cwd=tmp_path))["steps"]
    assert steps["from"] == ("loop" if program == "a program" else "iterations")
    # The last step is left out if its work may not be complete. Steps of a loop last until the next one.
    assert len(steps["rows"]) + len(steps["left_out_names"]) == SERVED and SERVED_US <= steps["median"] <= 1000
    assert value(opstrobe("info", "--format", "json", "t.json", cwd=tmp_path))["value"]["steps"] == SERVED
    advice = value(opstrobe("advise", "--format", "json", "t.json", cwd=tmp_path))
    assert advice["base"]["average_step_ms"] <= 1
    assert not any(
        "capture_one" in str(finding["where"]) or "aten::mm" in str(finding["where"]) for finding in advice["findings"]
    )


def test_steps_that_capture_and_run_are_steps(opstrobe, tmp_path):
    """torch.compile captures a graph within a step and launches it there."""
    trace = Trace()
    trace.function("train.py(1): main", 0, CAPTURES * 10000)
    capture_loop(trace, "train.py(10): step", "train.py(20): forward", True, replays=True)
    trace.write(tmp_path / "t.json")
    steps = value(opstrobe("views", "--format", "json", "t.json", cwd=tmp_path))["steps"]
    assert steps["from"] == "loop" and len(steps["rows"]) + len(steps["left_out_names"]) == CAPTURES


def test_an_optimizer_in_a_capture_ends_no_step(opstrobe, tmp_path):
    """A graph of a complete training step: three steps warm up, and the fourth is captured."""
    trace = Trace()
    for ts in range(0, 40000, 10000):
        captured = ts == 30000
        if captured:
            trace.mark(True, ts, True)
        trace.forward("train.py(20): forward", ts + 100, runs=not captured)
        trace.row("user_annotation", "Optimizer.step#SGD.step", ts + 3000, 500)
        if captured:
            trace.mark(False, ts + 5000, True)
    trace.write(tmp_path / "t.json")
    found = value(opstrobe("info", "--format", "json", "t.json", cwd=tmp_path))["value"]
    assert (found["steps_from"], found["steps"]) == ("optimizer", 3)
