# SPDX-License-Identifier: Apache-2.0
"""Profiles for the Firefox Profiler: the tables refer to each other as its processed format requires, and hold the spans of the trace."""

from __future__ import annotations

import gzip
import json
from collections import Counter

START = 1_700_000_000_000_000


def span(category, name, start, duration, tid=7, pid=7, **args):
    row = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": START + start, "dur": duration}
    return {**row, "args": args}


def make_trace():
    return [
        span("python_function", "train.py(12): step", 0, 100),
        span("user_annotation", "epoch", 5, 80),
        span("cpu_op", "aten::mm", 10, 20.5),
        span("cuda_runtime", "cudaLaunchKernel", 15, 3, correlation=1),
        span("cpu_op", "aten::mm", 30.5, 9.5),
        span("python_function", "train.py(12): step", 150, 10),
        span("kernel", "gemm \u201cx\u201d", 20, 40, tid=3, pid=0, device=0, stream=3, correlation=1),
        span("kernel", "overlapping", 50, 30, tid=3, pid=0, device=0, stream=3),
        {"ph": "i", "cat": "cpu_instant_event", "name": "mark", "pid": 7, "tid": 7, "ts": START + 42, "s": "t"},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": "main \\ thread"}},
    ]


def write(opstrobe, folder, name, rows=None):
    (folder / "t.json").write_text(json.dumps({"traceEvents": make_trace() if rows is None else rows}))
    process = opstrobe("convert", "t.json", name, cwd=folder)
    assert process.returncode == 0, process.stderr
    data = (folder / name).read_bytes()
    return json.loads(gzip.decompress(data) if name.endswith(".gz") else data)


def check_tables(thread):
    """Columns are as long as their tables, and numbers refer to what exists."""
    limits = {"stack": "stackTable", "prefix": "stackTable", "frame": "frameTable", "func": "funcTable"}
    for table in ("samples", "stackTable", "frameTable", "funcTable", "markers", "resourceTable", "nativeSymbols"):
        columns = {key: value for key, value in thread[table].items() if isinstance(value, list)}
        assert {len(column) for column in columns.values()} == {thread[table]["length"]}, table
        for key, column in columns.items():
            most = len(thread["stringArray"]) if key in ("name", "fileName") else None
            most = thread[limits[key]]["length"] if key in limits else most
            assert most is None or all(entry is None or 0 <= entry < most for entry in column), (table, key)
    assert all(prefix is None or prefix < i for i, prefix in enumerate(thread["stackTable"]["prefix"]))
    assert thread["samples"]["time"] == sorted(thread["samples"]["time"])


def stack_of(thread, stack):
    names = []
    while stack is not None:
        function = thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]
        names.insert(0, thread["stringArray"][thread["funcTable"]["name"][function]])
        stack = thread["stackTable"]["prefix"][stack]
    return ";".join(names)


def samples_of(thread):
    samples = thread["samples"]
    return [
        (round(time * 1e6), stack_of(thread, stack), round(weight * 1e6))
        for time, stack, weight in zip(samples["time"], samples["stack"], samples["weight"], strict=True)
    ]


def test_spans_as_samples(opstrobe, tmp_path):
    profile = write(opstrobe, tmp_path, "t.firefox.json")
    assert profile["meta"]["preprocessedProfileVersion"] == 48 and profile["meta"]["startTime"] == START / 1000
    assert [category["color"] for category in profile["meta"]["categories"]].count("grey") == 1
    stream, main = sorted(profile["threads"], key=lambda thread: thread["name"] == "main \\ thread")
    for thread in (main, stream):
        check_tables(thread)
    assert (main["pid"], main["tid"], main["isMainThread"]) == ("7", "7", True)
    assert (stream["pid"], stream["isMainThread"]) == ("GPU 0", False)
    epoch, launch = "step;epoch", "step;epoch;aten::mm;cudaLaunchKernel"
    assert samples_of(main) == [
        (0, "step", 5000),
        (5000, epoch, 5000),
        (10000, f"{epoch};aten::mm", 5000),
        (15000, launch, 3000),
        (18000, f"{epoch};aten::mm", 12500),
        (30500, f"{epoch};aten::mm", 9500),
        (40000, epoch, 45000),
        (85000, "step", 15000),
        (100000, "", 0),
        (150000, "step", 10000),
        (160000, "", 0),
    ]
    step = main["funcTable"]
    assert main["stringArray"][step["fileName"][0]] == "train.py" and step["lineNumber"][0] == 12
    markers = {main["stringArray"][name]: i for i, name in enumerate(main["markers"]["name"])}
    assert set(markers) == {"epoch", "mark"}
    assert main["markers"]["endTime"][markers["mark"]] is None and main["markers"]["phase"][markers["mark"]] == 0
    assert round(main["markers"]["endTime"][markers["epoch"]] * 1e6) == 85000


def test_the_same_times_as_folded_stacks(opstrobe, tmp_path):
    profile = write(opstrobe, tmp_path, "t.firefox.json.gz")
    main = next(thread for thread in profile["threads"] if thread["isMainThread"])
    sums = Counter()
    for _, stack, weight in samples_of(main):
        sums[stack] += weight
    assert opstrobe("convert", "--keep-wrappers", "t.json", "t.folded", cwd=tmp_path).returncode == 0
    lines = [line.rsplit(" ", 1) for line in (tmp_path / "t.folded").read_text().splitlines()]
    folded = {stack.replace("train.py(12):_step", "step"): int(value) for stack, value in lines}
    assert {stack: value for stack, value in sums.items() if value} == folded


def test_events_that_overlap(opstrobe, tmp_path):
    """What ends after the event around it ends with it, so that the times of a stream add up."""
    profile = write(opstrobe, tmp_path, "t.firefox.json")
    stream = next(thread for thread in profile["threads"] if not thread["isMainThread"])
    assert sum(weight for _, _, weight in samples_of(stream)) <= 60_000
    check_tables(stream)


def test_a_trace_without_events(opstrobe, tmp_path):
    assert write(opstrobe, tmp_path, "t.firefox.json", [])["threads"] == []
