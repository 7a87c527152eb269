# SPDX-License-Identifier: Apache-2.0
"""opstrobe analyze critical_path: a recorded step of training on the CPU, and the same step with its backward pass on a thread
of the autograd engine, as traces with a GPU have it. The path of both is all that operators took."""

import copy
import gzip
import json
import pathlib
import subprocess
from decimal import Decimal

import pytest
from installed import OPSTROBE

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "web" / "tests" / "traces" / "train.pt.trace.json.gz"
ENGINE = "autograd::engine::evaluate_function: "
WORK = ("cpu_op", "cuda_runtime", "cuda_driver")


@pytest.fixture(scope="module")
def trace():
    with gzip.open(RECORDED) as file:
        return json.load(file, parse_float=Decimal)


def spans(rows, keep):
    for row in rows:
        if row.get("ph") == "X" and keep(row):
            start = Decimal(row["ts"])
            yield row, start, start + Decimal(row["dur"])


def outermost_us(rows, first, last):
    """The time of operators that are in no other, of those that start from `first` to `last`."""
    total, until = Decimal(0), Decimal(-1)
    found = ((start, end) for _, start, end in spans(rows, lambda row: row.get("cat") in WORK))
    for start, end in sorted((start, end) for start, end in found if first <= start <= last):
        if start >= until:
            total += end - start
            until = end
    return total


def with_an_engine_thread(trace):
    """What the engine ran, and the ends of arrows in it, move to another thread."""
    moved = copy.deepcopy(trace)
    rows = moved["traceEvents"]
    nodes = [(row["tid"], start, end) for row, start, end in spans(rows, lambda row: row["name"].startswith(ENGINE))]
    for row in rows:
        # By this word in names the reference takes two threads for one.
        row["name"] = row["name"].replace("forward", "fwd")
        if row.get("ph") not in ("X", "s", "f"):
            continue
        start = Decimal(row["ts"])
        end = start + Decimal(row.get("dur", 0))
        if any(tid == row["tid"] and begin <= start and end <= stop for tid, begin, stop in nodes):
            row["tid"] = 77
    return moved


def path_us(path, step, *options):
    call = [OPSTROBE, "analyze", "critical_path", "--format", "json", "--annotation", step, *options, path]
    ended = subprocess.run(call, capture_output=True, check=True, timeout=300)
    return json.loads(ended.stdout, parse_float=Decimal)["value"]["path_weight"]


def test_the_path_goes_through_the_engine_and_back(trace, tmp_path):
    steps = sorted(
        (start, end, row["name"])
        for row, start, end in spans(trace["traceEvents"], lambda row: row["name"].startswith("ProfilerStep#"))
    )[:-1]
    moved = with_an_engine_thread(trace)
    (tmp_path / "one.json").write_text(json.dumps(trace, default=float))
    (tmp_path / "two.json").write_text(json.dumps(moved, default=float))
    threads = [[row for row in moved["traceEvents"] if (row.get("tid") == 77) == engine] for engine in (False, True)]
    assert steps and len(threads[1]) > 100
    for first, last, name in steps:
        all_us = outermost_us(trace["traceEvents"], first, last)
        parts = [outermost_us(rows, first, last) for rows in threads]
        assert sum(parts) == all_us and all(parts)
        near = pytest.approx(float(all_us), abs=0.01)
        assert float(path_us(tmp_path / "one.json", name)) == near
        assert float(path_us(tmp_path / "two.json", name)) == near
        # To the reference the threads do not wait for each other.
        assert float(path_us(tmp_path / "two.json", name, "--rules", "hta")) == pytest.approx(
            float(max(parts)), abs=0.01
        )
