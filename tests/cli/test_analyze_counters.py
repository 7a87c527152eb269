# SPDX-License-Identifier: Apache-2.0
"""opstrobe analyze trace_with_counters: a copy of the trace with counters in it."""

import gzip
import json


def trace(events):
    return {"schemaVersion": 1, "traceEvents": events, "traceName": 'a ] " [ {traceEvents'}


EVENTS = [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 2,
     "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "k ]", "pid": 0, "tid": 7, "ts": 20, "dur": 5,
     "args": {"correlation": 1, "stream": 7}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": 14, "dur": 2,
     "args": {"correlation": 2}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 30.5, "dur": 4,
     "args": {"correlation": 2, "stream": 7, "memory bandwidth (GB/s)": 12.5}},
]  # fmt: skip


def test_trace_with_counters(opstrobe, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(trace(EVENTS)))
    ended = opstrobe("analyze", "trace_with_counters", "--format", "json", "a.json")
    assert ended.returncode == 0, ended.stderr
    table = json.loads(ended.stdout)["table"]
    assert table["columns"] == ["rank", "file", "queue_length_points", "memory_bw_points"]
    assert table["rows"] == [[0, "a_with_counters.json.gz", 4, 2]]
    with gzip.open(tmp_path / "a_with_counters.json.gz", "rt") as file:
        copy = json.load(file)
    assert copy["traceEvents"][: len(EVENTS)] == EVENTS
    assert copy["traceName"] == trace([])["traceName"]
    counters = copy["traceEvents"][len(EVENTS) :]
    assert all(event["ph"] == "C" and event["pid"] == 0 and event["id"] == 7 for event in counters)
    assert [(event["name"], event["ts"], event["args"]) for event in counters] == [
        ("Queue Length", 10, {"Queue Length": 1}),
        ("Queue Length", 14, {"Queue Length": 2}),
        ("Queue Length", 20, {"Queue Length": 1}),
        ("Queue Length", 30.5, {"Queue Length": 0}),
        ("Memcpy HtoD", 30.5, {"Memcpy BW": 12.5}),
        ("Memcpy HtoD", 34.5, {"Memcpy BW": 0}),
    ]


def test_elsewhere_and_empty(opstrobe, tmp_path):
    (tmp_path / "out").mkdir()
    with gzip.open(tmp_path / "b.json.gz", "wt") as file:
        json.dump(trace([]), file)
    ended = opstrobe("analyze", "trace_with_counters", "--output-dir", "out", "b.json.gz")
    assert ended.returncode == 0, ended.stderr
    with gzip.open(tmp_path / "out" / "b_with_counters.json.gz", "rt") as file:
        assert json.load(file) == trace([])


def test_damaged(opstrobe, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(trace(EVENTS))[:300])
    ended = opstrobe("analyze", "trace_with_counters", "a.json")
    assert ended.returncode == 1
    assert "the text ends early" in ended.stderr
    assert not (tmp_path / "a_with_counters.json.gz").exists()
