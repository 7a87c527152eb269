# SPDX-License-Identifier: Apache-2.0
"""Profiles of pprof: what they say, decoded here by the fields of profile.proto, is what collapsed stacks say."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def members(data):
    return dict(fields(data))


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value - (1 << 64) if value >> 63 else value)
    return values


def read_profile(path):
    data = path.read_bytes()
    parts = list(fields(gzip.decompress(data) if path.suffix == ".gz" else data))
    strings = [value.decode() for number, value in parts if number == 6]
    functions = {item[1]: item for item in (members(value) for number, value in parts if number == 5)}
    lines = {item[1]: members(item[4]) for item in (members(value) for number, value in parts if number == 4)}

    def name(location):
        function = functions[lines[location][1]]
        place = f"{strings[function[4]]}({function.get(5, 0)}): " if 4 in function else ""
        return place + strings[function[2]]

    (kind,) = [members(value) for number, value in parts if number == 1]
    assert (strings[kind[1]], strings[kind[2]]) == ("time", "nanoseconds") and strings[0] == ""
    stacks = Counter()
    for number, value in parts:
        if number == 2:
            sample = members(value)
            (time,) = packed(sample[2])
            stacks[tuple(name(location) for location in reversed(packed(sample[1])))] += time
    return stacks


def event(name, start, end, category="cpu_op"):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start}


def trace(factor=1):
    rows = [
        event("train.py(3): main", 0, 100 * factor, "python_function"),
        event("aten::mm", 10, 10 + 20 * factor),
        event("aten::add_", 50 * factor, 50 * factor + 5),
    ]
    return json.dumps({"traceEvents": rows})


@pytest.mark.parametrize("ending", [".pb.gz", ".pb"])
def test_profile_equals_stacks(opstrobe, tmp_path, ending):
    (tmp_path / "t.json").write_text(trace())
    assert opstrobe("convert", "t.json", "t" + ending, cwd=tmp_path).returncode == 0
    assert read_profile(tmp_path / f"t{ending}") == {
        ("train.py(3): main",): 75_000,
        ("train.py(3): main", "aten::mm"): 20_000,
        ("train.py(3): main", "aten::add_"): 5_000,
    }


def test_a_difference_has_times_below_zero(opstrobe, tmp_path):
    (tmp_path / "slow.json").write_text(trace(2))
    (tmp_path / "fast.json").write_text(trace())
    assert opstrobe("diff", "--flame", "d.pb.gz", "slow.json", "fast.json", cwd=tmp_path).returncode == 0
    found = read_profile(tmp_path / "d.pb.gz")
    assert found[("train.py(3): main", "aten::mm")] == -20_000 and ("train.py(3): main", "aten::add_") not in found


def test_deep_stacks_are_cut_and_no_time_is_lost(opstrobe, tmp_path):
    depth = 5000
    rows = [event(f"f{i}", i, 20_000 - i) for i in range(depth)]
    (tmp_path / "deep.json").write_text(json.dumps({"traceEvents": rows}))
    process = opstrobe("convert", "deep.json", "deep.pb.gz", cwd=tmp_path)
    assert process.returncode == 0 and "stacks" in process.stderr
    stacks = read_profile(tmp_path / "deep.pb.gz")
    assert sum(stacks.values()) == 20_000_000
    (deepest,) = [stack for stack in stacks if stack[-1] == f"f{depth - 1}"]
    assert deepest[0] == "[truncated]" and deepest[-2] == f"f{depth - 2}" and len(deepest) <= 2001
