# SPDX-License-Identifier: Apache-2.0
"""Profiles of other tools whose samples are stacks: speedscope, folded stacks, pprof and perf script. What is read is compared as folded
stacks with the sums that the files are made of."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter

import pytest
from protobuf import message, varint

STACKS = [
    (("train.py", 9, "<module>"), ("train.py", 4, "step"), ("ops.c", 7, "mul(a; b)")),
    (("train.py", 9, "<module>"),),
    (),
]
WEIGHTS = [30, 20, 5]
ORDER = [0, 0, 1, 2, 0]  # the stack of each sample


def frame_text(frame):
    file, line, name = frame
    name = name.replace(";", ",")
    return (f"{file}({line}):_{name}" if file.endswith(".py") else f"{name} [{file}:{line}]").replace(" ", "_")


def expected(scale=1):
    sums = Counter()
    for which in ORDER:
        sums[";".join(frame_text(frame) for frame in STACKS[which])] += WEIGHTS[which] * scale
    return {stack: value for stack, value in sums.items() if stack}


def make_speedscope(unit="milliseconds", **members):
    frames = list(dict.fromkeys(frame for stack in STACKS for frame in stack))
    profile = {"type": "sampled", "name": "main", "unit": unit, "startValue": 0, "endValue": 115}
    profile["samples"] = [[frames.index(frame) for frame in STACKS[which]] for which in ORDER]
    profile["weights"] = [WEIGHTS[which] for which in ORDER]
    shared = {"frames": [{"name": name, "file": file, "line": line} for file, line, name in frames]}
    schema = "https://www.speedscope.app/file-format-schema.json"
    return json.dumps({"profiles": [{**profile, **members}], "shared": shared, "$schema": schema}).encode()


def make_folded():
    lines = [
        ";".join(f"{name.replace(';', ',')} ({file}:{line})" for file, line, name in STACKS[which]) for which in ORDER
    ]
    return "".join(f"{line} {WEIGHTS[which]}\n" for line, which in zip(lines, ORDER, strict=True)).encode()


def make_pprof(types=(("samples", "count"), ("cpu", "microseconds"))):
    texts = [""]

    def text(value):
        if value not in texts:
            texts.append(value)
        return texts.index(value)

    frames = list(dict.fromkeys(frame for stack in STACKS for frame in stack))
    parts = [(1, message((1, text(kind)), (2, text(unit)))) for kind, unit in types]
    for which in ORDER:
        places = b"".join(varint(frames.index(frame) + 1) for frame in reversed(STACKS[which]))
        parts.append((2, message((1, places), *((2, value) for value in (1, WEIGHTS[which])[: len(types)]))))
    for number, (file, line, name) in enumerate(frames, 1):
        parts.append((4, message((1, number), (4, message((1, number), (2, line))))))
        parts.append((5, message((1, number), (2, text(name)), (4, text(file)), (5, 1))))
    return message(*parts, *((6, each) for each in texts))


PERF = b"""# a comment
python3  7412/7413 [001]  10.000030000:      30000 cpu-clock:ppp:
\t          24f43f mul+0x5f (/usr/lib/libops.so)
\t    7f3e8c7719e0 [unknown] (/usr/lib/libmain.so)

python3  7412/7413 [001]  10.000060000:      30000 cpu-clock:ppp:
\t          24f440 mul+0x60 (/usr/lib/libops.so)
\t    7f3e8c7719e0 [unknown] (/usr/lib/libmain.so)

Web Content  7414 [000]  10.000070000:      20000 cpu-clock:ppp:      7fff operator+(int, int)+0x10 (a.out)
python3  7412/7413 [001]  10.000900000:      40000 cpu-clock:ppp:
\t    7f3e8c7719e0 [unknown] (/usr/lib/libmain.so)
python3  7412/7413 [001]  10.000900000:        900 instructions:
\t    7f3e8c7719e0 [unknown] (/usr/lib/libmain.so)
something else
"""


def read(opstrobe, folder, name, data):
    """The folded stacks of a file, and its diagnostics by their kinds."""
    (folder / name).write_bytes(data)
    process = opstrobe("convert", name, "out.folded", cwd=folder)
    assert process.returncode == 0, process.stderr
    lines = [line.rpartition(" ") for line in (folder / "out.folded").read_text().splitlines()]
    shown = json.loads(opstrobe("info", "--format", "json", name, cwd=folder).stdout)
    return {stack: int(value) for stack, _, value in lines}, {
        each["kind"]: each["count"] for each in shown.get("diagnostics", [])
    }


@pytest.mark.parametrize(
    ("name", "data", "scale", "kinds"),
    [
        ("p.speedscope.json", make_speedscope(), 1_000_000, ["sampled"]),
        ("p.speedscope.json", make_speedscope("none"), 1, ["sampled", "not_time"]),
        ("p.folded", make_folded(), 1, ["sampled", "no_order", "not_time"]),
        ("p.pb", make_pprof(), 1000, ["sampled", "no_order"]),
        ("p.pb.gz", gzip.compress(make_pprof()), 1000, ["sampled", "no_order"]),
    ],
    ids=["speedscope", "speedscope without a unit", "folded", "pprof", "pprof.gz"],
)
def test_stacks_have_the_sums_of_their_samples(opstrobe, tmp_path, name, data, scale, kinds):
    stacks, noted = read(opstrobe, tmp_path, name, data)
    assert stacks == expected(scale) and list(noted) == kinds
    assert noted["sampled"] == len(ORDER)
    files = json.loads(opstrobe("lines", "--format", "json", name, cwd=tmp_path).stdout)["files"]
    assert {(each["file"], row["line"]) for each in files for row in each["lines"]} == {
        ("train.py", 9),
        ("train.py", 4),
    }
    shown = opstrobe("views", name, cwd=tmp_path)
    assert shown.returncode == 0 and "This profile has samples, so no rule of advice applies" in shown.stdout
    assert opstrobe("validate", name, cwd=tmp_path).returncode == 0


def test_calls_of_an_evented_profile(opstrobe, tmp_path):
    events = [("O", 0, 10), ("O", 1, 12), ("C", 1, 20), ("O", 1, 25), ("C", 1, 30), ("C", 0, 40)]
    profile = {"type": "evented", "name": "worker", "unit": "microseconds", "startValue": 10, "endValue": 40}
    profile["events"] = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    shared = {"frames": [{"name": "main", "file": "a.py", "line": 1}, {"name": "step \\u0031"}]}
    (tmp_path / "p.json").write_text(json.dumps({"shared": shared, "profiles": [profile]}).replace("\\\\u", "\\u"))
    assert opstrobe("convert", "p.json", "out.json", cwd=tmp_path).returncode == 0
    trace = json.loads((tmp_path / "out.json").read_text())
    rows = [entry for entry in trace["traceEvents"] if entry["ph"] == "X"]
    assert [(row["name"], row["tid"], row["dur"]) for row in rows] == [
        ("a.py(1): main", 1, 30),
        ("step 1", 1, 8),
        ("step 1", 1, 5),
    ]
    assert "diagnostics" not in json.loads(opstrobe("info", "--format", "json", "p.json", cwd=tmp_path).stdout)


def test_perf_script(opstrobe, tmp_path):
    stacks, noted = read(opstrobe, tmp_path, "p.perf", PERF)
    main = "/usr/lib/libmain.so"
    assert stacks == {f"{main};mul": 60_000, main: 40_000, "operator+(int,_int)": 20_000}
    assert noted == {"sampled": 4, "other_event": 1, "not_an_event": 1}
    assert "an entry that is not an event; left out" in opstrobe("info", "p.perf", cwd=tmp_path).stderr
    assert opstrobe("convert", "p.perf", "out.json", cwd=tmp_path).returncode == 0
    trace = json.loads((tmp_path / "out.json").read_text())
    rows = [entry for entry in trace["traceEvents"] if entry["ph"] == "X"]
    base = trace["baseTimeNanoseconds"]
    shown = sorted(
        (row["pid"], row["tid"], row["name"], round(float(row["ts"]) * 1000) + base, round(row["dur"] * 1000))
        for row in rows
    )
    assert shown == [
        (0, 7414, "operator+(int, int)", 10_000_050_000, 20_000),
        (7412, 7413, main, 10_000_000_000, 60_000),
        (7412, 7413, main, 10_000_860_000, 40_000),
        (7412, 7413, "mul", 10_000_000_000, 60_000),
    ]
    cycles, noted = read(opstrobe, tmp_path, "c.perf", PERF.replace(b"cpu-clock:ppp", b"cycles"))
    assert cycles == {f"{main};mul": 2, main: 1, "operator+(int,_int)": 1} and noted["not_time"] == 4


def test_what_we_write_is_read_back(opstrobe, tmp_path):
    """A trace as pprof, folded stacks and speedscope has the same stacks as the trace."""
    events = [
        ("train.py(3): main", 0, 100, "python_function"),
        ("aten::mm", 10, 30, "cpu_op"),
        ("aten::mm", 50, 51.5, "cpu_op"),
    ]
    rows = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start}
        for name, start, end, cat in events
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    assert opstrobe("convert", "t.json", "t.folded", cwd=tmp_path).returncode == 0
    wanted = dict(line.rsplit(" ", 1) for line in (tmp_path / "t.folded").read_text().splitlines())
    assert wanted == {"train.py(3):_main": "78500", "train.py(3):_main;aten::mm": "21500"}
    for ending in (".pb.gz", ".pb", ".folded", ".speedscope.json"):
        assert opstrobe("convert", "t.json", "there" + ending, cwd=tmp_path).returncode == 0
        stacks, _ = read(opstrobe, tmp_path, "there" + ending, (tmp_path / f"there{ending}").read_bytes())
        assert {stack: str(value) for stack, value in stacks.items()} == wanted, ending


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("cut.json", make_speedscope()[:-30], "a profile of speedscope: invalid JSON"),
        ("p.json", make_speedscope(samples=[[7]]), "a frame number that is not in the file"),
        ("p.json", make_speedscope(weights=[1]), "a sample without a weight"),
        ("p.json", make_speedscope(weights=[-1] * 5), "a weight below zero"),
        ("p.json", make_speedscope(weights=[1e300] * 5), "a time or weight that is not a number, or too large"),
        ("p.json", make_speedscope("bytes"), "a profile of bytes"),
        ("p.json", make_speedscope(events=[{"type": "C", "frame": 0, "at": 1}]), "closes a frame which is not the innermost open one"),
        ("p.folded", b"a;b 12\na;b twelve\n", "byte 7: a line of folded stacks that does not end in a space and a number"),
        ("p.folded", b"a;b 2000000000000000000\na;b 2000000000000000000\n", "numbers whose sum is too large"),
        ("p.pb", make_pprof()[:-10], "the file is truncated or not a profile"),
        ("p.pb", make_pprof([("inuse_space", "bytes")]), "whose values are neither times nor counts"),
        ("p.pb", make_pprof().replace(b"\x0a\x03\x03\x02\x01", b"\x0a\x03\x03\x63\x01", 1), "a location that is not in the file"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(opstrobe, tmp_path, name, data, error):
    (tmp_path / name).write_bytes(data)
    process = opstrobe("info", name, cwd=tmp_path)
    assert process.returncode == 1 and error in process.stderr and "byte " in process.stderr, process.stderr


def test_changed_files(opstrobe, tmp_path):
    seed = random.Random(5)
    for data in (make_speedscope(), make_folded(), make_pprof(), PERF):
        for _ in range(12):
            changed = bytearray(data)
            changed[seed.randrange(len(data))] = seed.randrange(256)
            (tmp_path / "changed").write_bytes(changed)
            process = opstrobe("info", "changed", cwd=tmp_path)
            assert process.returncode in (0, 1) and (process.returncode == 0 or process.stderr.startswith("opstrobe: "))
