# SPDX-License-Identifier: Apache-2.0
"""Files of other formats that are read as traces: memory snapshots and dumps of the flight recorder of
torch, traces of Perfetto, exports of Nsight Systems. The expected figures are
computed here from what the files are made of."""

from __future__ import annotations

import json
import pickle
import random
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from protobuf import field, message
from test_xplane import make_gpu

SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"
FRAMES = [{"filename": "/home/me/train.py", "line": 10 + i, "name": f"step{i}"} for i in range(4)]
TORCH = {"filename": "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", "line": 125, "name": "forward"}
NATIVE = {"filename": "??", "line": 0, "name": "c10::cuda::CUDACachingAllocator::malloc(int; x)"}
STACKS = [[NATIVE, TORCH, frame] for frame in FRAMES]
BASE = 0x7F0000000000
START_US = 1_700_000_000_000_000


def action(what, **members):
    return {"action": what, "stream": 0, "frames": [], **members}


def block(address, size, frames, state="active_allocated"):
    rounded = (size + 511) // 512 * 512
    return {"address": address, "size": rounded, "requested_size": size, "state": state, "frames": frames}


def make_snapshot():
    """1,000 bytes that are older than the history and freed in it, 2,000 that outlive it, and a history of blocks of line 10 + i."""
    seed = random.Random(7)
    now, live, history = START_US, {}, [action("segment_alloc", addr=BASE, size=1 << 20, time_us=START_US)]
    held, peak = 3000, (3000, START_US)
    for i in range(300):
        now += seed.randint(1, 50)
        if live and seed.random() < 0.4:
            address = seed.choice(list(live))
            size, frames = live.pop(address)
            history.append(action("free_requested", addr=address, size=size, time_us=now, frames=frames))
            history.append(action("free_completed", addr=address, size=size, time_us=now, frames=frames))
            held -= size
        else:
            live[BASE + 4096 * (i + 1)] = size, frames = seed.randint(1, 4000), STACKS[i % 4]
            history.append(action("alloc", addr=BASE + 4096 * (i + 1), size=size, time_us=now, frames=frames))
            held += size
            peak = max(peak, (held, now), key=lambda entry: entry[0])
    history.append(action("free_completed", addr=BASE, size=1000, time_us=now + 1))
    blocks = [block(BASE + 1024, 2000, STACKS[0]), block(BASE + 512, 0, [], "inactive")]
    blocks += [block(address, size, frames) for address, (size, frames) in live.items()]
    segment = {
        "device": 0,
        "address": BASE,
        "total_size": 2 << 20,
        "segment_pool_id": (0, 0),
        "blocks": blocks,
        "frames": STACKS[1],
    }
    snapshot = {
        "segments": [segment],
        "device_traces": [history, []],
        "allocator_settings": {"ratio": 0.5, "none": None, "big": 1 << 70, "negative": -(1 << 62)},
        "external_annotations": [],
    }
    return snapshot, peak


@pytest.fixture(scope="module")
def snapshot():
    return make_snapshot()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_memory_snapshot(opstrobe, tmp_path, snapshot, protocol):
    content, (peak, peak_us) = snapshot
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(content, protocol))
    shown = json.loads(opstrobe("memory", "--format", "json", "snapshot.pickle", cwd=tmp_path).stdout)
    rows = [dict(zip(shown["table"]["columns"], row, strict=True)) for row in shown["table"]["rows"]]
    rows = [row for row in rows if row["device"] == "cuda:0"]
    assert [row["bytes"] for row in rows if row["held_by"] == "all"] == [peak]
    by_line: dict[str, int] = {}
    live = {BASE + 1024: (2000, STACKS[0]), BASE: (1000, [])}
    for entry in content["device_traces"][0]:
        if entry.get("time_us", 0) > peak_us:
            break
        if entry["action"] == "alloc":
            live[entry["addr"]] = entry["size"], entry["frames"]
        elif entry["action"] == "free_completed":
            live.pop(entry["addr"])
    for size, frames in live.values():
        place = f"{frames[-1]['filename']}:{frames[-1]['line']}" if frames else ":None"
        by_line[place] = by_line.get(place, 0) + size
    assert {f"{row['name']}:{row['line']}": row["bytes"] for row in rows if row["held_by"] == "line"} == by_line


@pytest.mark.parametrize("twice", [False, True])
def test_long_memory_snapshot(tmp_path, twice):
    """The reader releases parts of a long history while it makes records of it. A list may be that of two devices."""
    pytest.importorskip("pyarrow")
    import opstrobe as package

    history, expected = [], []
    for i in range(80_000):
        size, address, now = i % 997 + 1, BASE + 4096 * i, START_US + 10 * i
        history.append(action("alloc", addr=address, size=size, time_us=now))
        history.append(action("free_completed", addr=address, size=size, time_us=now + 5))
        expected += [(now * 1000, size, size, address), (now * 1000 + 5000, -size, 0, address)]
    snapshot = {"segments": [], "device_traces": [history, history] if twice else [history]}
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot, 4))
    rows = package.read(tmp_path / "s.pickle").to_arrow("memory").to_pylist()
    for device in range(1 + twice):
        found = [
            (row["time_ns"], row["bytes"], row["total_allocated"], row["address"])
            for row in rows
            if row["device"] == device
        ]
        assert found == expected


def test_memo_of_a_pickle_has_numbers_of_any_size(opstrobe, tmp_path):
    """Python does not remember numbers, but the format allows it."""
    text = lambda word: b"\x8c" + bytes([len(word)]) + word  # noqa: E731
    address, time, small = (1 << 61) + 3, 1_790_000_000_000_000, 7
    put = [b"\x8a\x08" + number.to_bytes(8, "little") + b"\x94" for number in (address, time, small)]
    actions = [
        b"}(" + text(b"action") + text(b"alloc") + text(b"addr") + numbers[0] + text(b"time_us") + numbers[1] + text(b"size") + numbers[2] + b"u"
        for numbers in (put, [b"h\x00", b"h\x01", b"h\x02"])
    ]  # fmt: skip
    data = b"\x80\x04}(" + text(b"segments") + b"]" + text(b"device_traces") + b"](](" + b"".join(actions) + b"eeu."
    assert pickle.loads(data)["device_traces"][0][0] == {
        "action": "alloc",
        "addr": address,
        "time_us": time,
        "size": small,
    }
    (tmp_path / "memo.pickle").write_bytes(data)
    process = opstrobe("convert", "memo.pickle", "out.json", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    written = [
        row["args"]
        for row in json.loads((tmp_path / "out.json").read_text())["traceEvents"]
        if row["name"] == "[memory]"
    ]
    assert [(row["Addr"], row["Bytes"]) for row in written] == [(address, small)] * 2


def test_damaged_memory_snapshots(opstrobe, tmp_path, snapshot):
    """Cut anywhere, with an opcode that would run code, or of other things: an error that names the byte, and nothing is run."""
    data = pickle.dumps(snapshot[0], 4)
    for size in [*range(90, 400, 31), *range(400, len(data), len(data) // 23)]:
        (tmp_path / "cut.pickle").write_bytes(data[:size])
        process = opstrobe("info", "cut.pickle", cwd=tmp_path)
        assert process.returncode == 1 and f"byte {size}: the file ends early" in process.stderr, (size, process.stderr)

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "touched",))

    (tmp_path / "evil.pickle").write_bytes(pickle.dumps({"segments": [Evil()]}))
    process = opstrobe("info", "evil.pickle", cwd=tmp_path)
    assert process.returncode == 1 and "imports or calls something" in process.stderr
    assert not (tmp_path / "touched").exists()
    (tmp_path / "other.pickle").write_bytes(pickle.dumps([{"segments": 1}]))
    assert "not a memory snapshot" in opstrobe("info", "other.pickle", cwd=tmp_path).stderr


def test_bytes_changed_in_a_memory_snapshot(opstrobe, tmp_path, snapshot):
    """Whatever a byte becomes, there is an answer or an error."""
    data = bytearray(pickle.dumps(snapshot[0], 4)[:6000])
    seed = random.Random(3)
    for _ in range(60):
        changed = bytearray(data)
        changed[seed.randrange(len(data))] = seed.randrange(256)
        (tmp_path / "changed.pickle").write_bytes(changed)
        process = opstrobe("info", "changed.pickle", cwd=tmp_path)
        assert process.returncode in (0, 1) and (process.returncode == 0 or process.stderr.startswith("opstrobe: "))


# --- Perfetto --------------------------------------------------------------------------------------------------------


def packet(*fields):
    return field(1, message((10, 7), *fields))


def event(time, kind, track, *more):
    return packet((8, time), (11, message((9, kind), (11, track), *more)))


OFFSET = 5_000_000_000  # of realtime before boottime
HEAD = b"".join(
    [
        packet((6, message((1, message((1, 1), (2, OFFSET + 1000))), (1, message((1, 6), (2, 1000)))))),
        packet((60, message((1, 10), (3, message((1, 42), (6, "python")))))),
        packet((60, message((1, 11), (4, message((1, 42), (2, 43), (5, "main"))), (5, 10)))),
        packet((60, message((1, 12), (2, "requests"), (5, 11)))),
        packet((60, message((1, 13), (2, "power"), (8, b""), (5, 10)))),
        packet(
            (13, 1),
            (
                12,
                message(
                    (1, message((1, 1), (2, "cpu_op"))),
                    (2, message((1, 1), (2, "aten::mm"))),
                    (3, message((1, 1), (2, "Input Dims"))),
                    (24, message((1, 1), (2, "[07] stream 7"))),
                    (24, message((1, 2), (2, "Kernel"))),
                    (1000, message((1, 1), (2, "_Z4gemm"), (3, "gemm(float*)"))),
                    (29, message((1, 1), (2, "a text"))),
                ),
            ),
        ),
    ]
)
SHAPE = message((12, message((4, 2))), (12, message((4, 3))))
DIMS = message((1, 1), (12, SHAPE))
BODY = b"".join(
    [
        event(2000, 1, 11, (3, 1), (10, 1), (4, DIMS), (4, message((10, "note"), (17, 1))), (47, struct.pack("<Q", 5))),
        event(2100, 3, 11, (23, "mark")),
        event(2500, 2, 11),
        event(2200, 1, 12, (23, "request 1")),
        event(2900, 2, 12),
        event(2300, 4, 13, (44, 81.5)),
        packet(
            (8, 2400),
            (
                53,
                message(
                    (1, 1), (2, 700), (11, 0), (13, 1), (14, 2), (19, 1),
                    (6, message((1, "correlation"), (2, "9"))), (6, message((1, "stream id"), (2, "7"))),
                    (21, message((1, message((1, 8), (2, 4))))),
                ),
            ),
        ),
        event(3000, 1, 11, (23, "unfinished")),
    ]
)  # fmt: skip


def convert(opstrobe, folder, data, name="perfetto.pftrace"):
    (folder / name).write_bytes(data)
    process = opstrobe("convert", name, "out.json", cwd=folder)
    assert process.returncode == 0, process.stderr
    return json.loads((folder / "out.json").read_text()), process.stderr


def test_perfetto_trace_of_another_program(opstrobe, tmp_path):
    trace, _ = convert(opstrobe, tmp_path, HEAD + BODY)
    base = trace["baseTimeNanoseconds"]
    events = {entry.get("name"): entry for entry in trace["traceEvents"] if entry["ph"] in "XbiC"}

    def start(name):
        return round(float(events[name]["ts"]) * 1000) + base - OFFSET

    mm = events["aten::mm"]
    assert (mm["cat"], mm["pid"], mm["tid"], start("aten::mm"), mm["dur"]) == ("cpu_op", 42, 43, 2000, 0.5)
    assert mm["args"]["Input Dims"] == [[2, 3]] and mm["args"]["note"] == "a text"
    assert events["mark"]["ph"] == "i" and start("mark") == 2100
    assert events["request 1"]["ph"] == "b" and events["request 1"]["tid"] == 43
    assert events["power"]["args"] == {"value": 81.5}
    gemm = events["gemm(float*)"]
    assert (gemm["cat"], gemm["pid"], gemm["tid"], start("gemm(float*)"), gemm["dur"]) == ("kernel", 0, 7, 2400, 0.7)
    assert gemm["args"]["grid"] == [8, 4, 1] and gemm["args"]["correlation"] == 9
    assert round(float(events["unfinished"]["dur"]) * 1000) == 0
    metas = [entry for entry in trace["traceEvents"] if entry["ph"] == "M" and entry["pid"] == 42]
    names = {entry["name"]: entry["args"]["name"] for entry in metas if "name" in entry["args"]}
    assert names == {"process_name": "python", "thread_name": "thread 43 (main)"}


def test_clocks_that_count_up(opstrobe, tmp_path):
    """A clock of the sequence: microseconds since the packet before."""
    clocks = ((1, message((1, 1), (2, 7_000_000))), (1, message((1, 64), (2, 4000), (3, 1), (4, 1000))))
    head = packet((6, message(*clocks))) + packet((59, message((58, 64), (11, message((11, 11))))))
    data = head + b"".join(
        packet((8, step), (11, message((9, kind), *([(23, name)] if name else []))))
        for step, kind, name in [(10, 1, "a"), (5, 1, "b"), (2, 2, ""), (3, 2, "")]
    )
    trace, _ = convert(opstrobe, tmp_path, data)
    rows = {entry["name"]: entry for entry in trace["traceEvents"] if entry["ph"] == "X"}
    base = trace["baseTimeNanoseconds"]
    assert round(float(rows["a"]["ts"]) * 1000) + base == 7_000_000 + 10_000 and rows["a"]["dur"] == 10
    assert round(float(rows["b"]["ts"]) * 1000) + base == 7_000_000 + 15_000 and rows["b"]["dur"] == 2


def test_cut_and_changed_perfetto_traces(opstrobe, tmp_path):
    data = HEAD + BODY
    for size in range(len(HEAD) + 40, len(data), 17):
        (tmp_path / "cut.pftrace").write_bytes(data[:size])
        process = opstrobe("info", "cut.pftrace", cwd=tmp_path)
        assert process.returncode == 0, (size, process.stderr)
    (tmp_path / "cut.pftrace").write_bytes(data[:-3])
    assert "ends early" in opstrobe("validate", "cut.pftrace", cwd=tmp_path).stdout
    seed = random.Random(5)
    for _ in range(60):
        changed = bytearray(data)
        changed[seed.randrange(12, len(data))] = seed.randrange(256)
        (tmp_path / "changed.pftrace").write_bytes(changed)
        process = opstrobe("info", "changed.pftrace", cwd=tmp_path)
        assert process.returncode in (0, 1) and (process.returncode == 0 or process.stderr.startswith("opstrobe: "))


def facts(trace):
    """What both formats can hold of each event."""
    base = trace.get("baseTimeNanoseconds", 0)
    left_out = {"Ev Idx", "Record function id"}
    return sorted(
        json.dumps(
            [entry.get("cat"), entry["name"], entry["pid"], entry["tid"], round(float(entry["ts"]) * 1000) + base, entry.get("dur"),
             {key: value for key, value in entry.get("args", {}).items() if key not in left_out}],
            sort_keys=True,
        )
        for entry in trace["traceEvents"]
        if entry["ph"] in "Xi"
    )  # fmt: skip


@pytest.mark.parametrize("source", ["training.json", "host.json", "hta/h100_bert_small", "hta/triton"])
@pytest.mark.parametrize("ending", [".pftrace", ".pftrace.gz"])
def test_to_perfetto_and_back(opstrobe, tmp_path, source, ending):
    path = Path(__file__).parents[1] / "fuzz" / "analyze" / source
    if "/" in source:
        path = SHARED / source / "trace.json.gz"
        if not path.exists():
            pytest.skip("the shared traces are not there")
    for words in (
        ("convert", str(path), "direct.json"),
        ("convert", str(path), "there" + ending),
        ("convert", "there" + ending, "back.json"),
    ):
        assert opstrobe(*words, cwd=tmp_path).returncode == 0
    direct, back = (json.loads((tmp_path / name).read_text()) for name in ("direct.json", "back.json"))
    assert facts(back) == facts(direct)
    shown = [opstrobe("views", name, cwd=tmp_path).stdout for name in ("direct.json", "there" + ending)]
    assert [line for line in shown[1].splitlines() if "file:" not in line][1:] and shown[1].splitlines()[2:] == shown[
        0
    ].splitlines()[2:]


def test_a_folder_of_formats(opstrobe, tmp_path, snapshot):
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot[0]))
    (tmp_path / "weights.pickle").write_bytes(pickle.dumps({"layer": [1]}))
    (tmp_path / "run.pftrace").write_bytes(HEAD + BODY)
    (tmp_path / "run.xplane.pb").write_bytes(make_gpu())
    shown = opstrobe("info", ".", cwd=tmp_path)
    assert "contains 3 traces" in shown.stderr


# --- Nsight Systems ---------------------------------------------------------------------------------------------------

EPOCH_NS = 1_700_000_000_000_000_000
MAIN, WORKER = (42 << 24) | 43, (77 << 24) | 78
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def make_nsight(
    path, *, kernel_columns="demangledName INTEGER, shortName INTEGER, gridX, gridY, gridZ, blockX, blockY, blockZ"
):
    """Two processes whose calls have the same numbers, with the tables and columns that the tests need."""
    names = ["", "cudaLaunchKernel_v7000", "gemm(float*)", "cuMemcpyAsync", "main", "read"]
    work = "start INTEGER, end INTEGER, deviceId, contextId, streamId, correlationId, globalPid"
    with sqlite3.connect(path) as base:
        base.executescript(
            f"""
            CREATE TABLE StringIds (id INTEGER, value TEXT);
            CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
            CREATE TABLE TARGET_INFO_GPU (name TEXT, id, cuDevice, totalMemory, smCount, computeMajor, computeMinor);
            CREATE TABLE PROCESSES (globalPid, pid, name TEXT);
            CREATE TABLE ThreadNames (nameId, priority, globalTid);
            CREATE TABLE NVTX_EVENTS (start, end, eventType, text TEXT, globalTid, textId);
            CREATE TABLE OSRT_API (start, end, globalTid, nameId);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId, returnValue);
            CREATE TABLE {KERNEL} ({work}, {kernel_columns});
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({work}, bytes, copyKind);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET ({work}, bytes, value);
            """
        )
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
        base.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '')", (EPOCH_NS,))
        base.execute("INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H100', 5, 0, 80000000000, 132, 9, 0)")
        base.executemany(
            "INSERT INTO PROCESSES VALUES (?, ?, ?)", [(42 << 24, 42, "/usr/bin/python3"), (77 << 24, 77, "worker")]
        )
        base.execute("INSERT INTO ThreadNames VALUES (4, 0, ?)", (MAIN,))
        ranges = [
            (1000, 9000, 59, "step 1", MAIN, None),
            (1500, 4000, 59, "aten::mm, seq = 3, op_id = 7, sizes = [[2, 3], [3, 4]]", MAIN, None),
            (2000, 8000, 60, "request", MAIN, None),
            (2500, None, 34, "mark", MAIN, None),
            (6000, 7000, 59, None, MAIN, 4),
        ]
        base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?)", ranges)
        base.execute("INSERT INTO OSRT_API VALUES (7100, 7200, ?, 5)", (MAIN,))
        calls = [(2000, 2500, MAIN, 9, 1, 0), (5000, 5400, WORKER, 9, 3, 0)]
        base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)", calls)
        columns = kernel_columns.count(",") + 1
        base.execute(
            f"INSERT INTO {KERNEL} VALUES (3000, 3900, 0, 1, 7, 9, {42 << 24}{', ?' * columns})",
            (2, 2, 8, 4, 1, 128, 1, 1)[:columns],
        )
        base.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5600, 5700, 0, 1, 9, 9, {77 << 24}, 4096, 1)")
        base.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (5800, 5810, 0, 1, 9, 10, {77 << 24}, 64, 0)")
    base.close()


def test_export_of_nsight_systems(opstrobe, tmp_path):
    make_nsight(tmp_path / "run.sqlite")
    process = opstrobe("convert", "run.sqlite", "out.json", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    trace = json.loads((tmp_path / "out.json").read_text())
    rows = {entry["name"]: entry for entry in trace["traceEvents"] if entry["ph"] in "Xbi"}
    start = {
        name: round(float(entry["ts"]) * 1000) + trace["baseTimeNanoseconds"] - EPOCH_NS for name, entry in rows.items()
    }
    what = {
        name: (entry.get("cat"), entry["pid"], entry["tid"], start[name], entry.get("dur"))
        for name, entry in rows.items()
    }
    assert what["step 1"] == ("user_annotation", 42, 43, 1000, 8) and what["main"] == (
        "user_annotation",
        42,
        43,
        6000,
        1,
    )
    assert what["aten::mm"] == ("cpu_op", 42, 43, 1500, 2.5)
    assert (
        rows["aten::mm"]["args"]["Input Dims"] == [[2, 3], [3, 4]] and rows["aten::mm"]["args"]["Sequence number"] == 3
    )
    assert what["cudaLaunchKernel_v7000"] == ("cuda_runtime", 42, 43, 2000, 0.5)
    assert what["cuMemcpyAsync"] == ("cuda_driver", 77, 78, 5000, 0.4)
    assert what["gemm(float*)"] == ("kernel", 0, 7, 3000, 0.9)
    assert rows["gemm(float*)"]["args"]["grid"] == [8, 4, 1] and rows["gemm(float*)"]["args"]["block"] == [128, 1, 1]
    assert what["Memcpy HtoD"] == ("gpu_memcpy", 0, 9, 5600, 0.1) and rows["Memcpy HtoD"]["args"]["bytes"] == 4096
    assert what["Memset"] == ("gpu_memset", 0, 9, 5800, 0.01) and what["read"] == ("os_runtime", 42, 43, 7100, 0.1)
    assert rows["request"]["ph"] == "b" and rows["mark"]["ph"] == "i"
    number = {
        name: rows[name]["args"]["correlation"]
        for name in ("cudaLaunchKernel_v7000", "gemm(float*)", "cuMemcpyAsync", "Memcpy HtoD")
    }
    assert (
        number["cudaLaunchKernel_v7000"] == number["gemm(float*)"] != number["cuMemcpyAsync"] == number["Memcpy HtoD"]
    )
    assert trace["deviceProperties"][0] == {
        "id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80000000000, "computeMajor": 9, "computeMinor": 0, "numSms": 132,
    }  # fmt: skip
    kernels = json.loads(opstrobe("kernels", "--by-operator", "--format", "json", "run.sqlite", cwd=tmp_path).stdout)[
        "table"
    ]
    listed = [dict(zip(kernels["columns"], row, strict=True)) for row in kernels["rows"]]
    assert ("gemm(float*)", "aten::mm") in {(row["name"], row["operator"]) for row in listed}


def test_parquet_export_of_nsight_systems(opstrobe, tmp_path):
    """The same tables as Parquet have the same rows."""
    pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    make_nsight(tmp_path / "run.sqlite")
    folder = tmp_path / "run_pqtdir"
    folder.mkdir()
    with sqlite3.connect(tmp_path / "run.sqlite") as base:
        base.row_factory = sqlite3.Row
        for (table,) in base.execute("SELECT name FROM sqlite_master").fetchall():
            rows = [dict(row) for row in base.execute(f"SELECT * FROM {table}")]
            parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{table}.parquet")
    base.close()
    query = "select * exclude (path, rank) from events order by id"
    wanted, found = (
        opstrobe("sql", "--format", "csv", query, name, cwd=tmp_path) for name in ("run.sqlite", "run_pqtdir")
    )
    assert found.returncode == 0 and found.stdout == wanted.stdout and "gemm(float*)" in found.stdout, found.stderr
    assert "use 'nsys export --type sqlite'" in opstrobe("kernels", "run_pqtdir", cwd=tmp_path).stderr
    (folder / "PROCESSES.parquet").write_bytes(b"PAR1")
    process = opstrobe("sql", query, "run_pqtdir", cwd=tmp_path)
    assert process.returncode == 1 and "PROCESSES.parquet" in process.stderr and "Traceback" not in process.stderr


def test_columns_that_a_version_does_not_have(opstrobe, tmp_path):
    make_nsight(tmp_path / "old.sqlite", kernel_columns="shortName INTEGER")
    process = opstrobe("kernels", "old.sqlite", cwd=tmp_path)
    assert process.returncode == 0 and "gemm(float*)" in process.stdout, process.stderr


def test_other_databases(opstrobe, tmp_path):
    with sqlite3.connect(tmp_path / "other.sqlite") as base:
        base.execute("CREATE TABLE StringIds (name)")
    base.close()
    process = opstrobe("info", "other.sqlite", cwd=tmp_path)
    assert process.returncode == 1 and "not an export of Nsight Systems" in process.stderr
    make_nsight(tmp_path / "cut.sqlite")
    data = (tmp_path / "cut.sqlite").read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(data[: len(data) // 2])
    process = opstrobe("info", "cut.sqlite", cwd=tmp_path)
    assert process.returncode == 1 and "SQLite:" in process.stderr
    process = opstrobe("info", "-", cwd=tmp_path, input=data, text=False)
    assert process.returncode == 1 and b"SQLite" in process.stderr


# --- the flight recorder ----------------------------------------------------------------------------------------------

RECORDED = """
import os, sys
os.environ.update(TORCH_FR_BUFFER_SIZE="100", MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1")
import torch
import torch.distributed as dist
store = dist.FileStore(sys.argv[1] + ".store", 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
group = dist.new_group([0])
for _ in range(3):
    dist.all_reduce(torch.ones(4, 5))
dist.all_gather([torch.ones(3)], torch.ones(3), group=group)
with open(sys.argv[1], "wb") as file:
    file.write(torch._C._distributed_c10d._dump_fr_trace())
dist.destroy_process_group()
"""


def test_dump_of_the_flight_recorder(opstrobe, tmp_path):
    """One of torch itself, whose pickler is not Python's."""
    pytest.importorskip("torch")
    (tmp_path / "record.py").write_text(RECORDED)
    subprocess.run(
        [sys.executable, "record.py", "dump.pickle"], cwd=tmp_path, check=True, timeout=300, capture_output=True
    )
    entries = pickle.loads((tmp_path / "dump.pickle").read_bytes())["entries"]
    assert opstrobe("convert", "dump.pickle", "out.json", cwd=tmp_path).returncode == 0
    trace = json.loads((tmp_path / "out.json").read_text())
    rows = [entry for entry in trace["traceEvents"] if entry["ph"] == "X"]
    base = trace["baseTimeNanoseconds"]
    shown = [
        (row["name"], row["tid"], round(float(row["ts"]) * 1000) + base, row["args"]["Input Dims"]) for row in rows
    ]
    assert shown == [(e["profiling_name"], e["pg_id"], e["time_created_ns"], e["input_sizes"]) for e in entries]
    assert len(shown) == 4 and all("record.py(" in row["args"]["Call stack"] for row in rows)


def test_collective_that_hangs(opstrobe, tmp_path):
    first = {"filename": "train.py", "line": 8, "name": "step"}
    common = {
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "frames": [{"filename": "??", "line": 0, "name": "c10d::launch(int; x)"}, first],
        "input_sizes": [[2, 2]],
        "input_dtypes": ["Float"],
    }
    entries = [
        {**common, "profiling_name": "nccl:all_reduce", "time_created_ns": 10_000, "state": "completed", "retired": True,
         "time_discovered_completed_ns": 90_000, "duration_ms": 0.05, "collective_seq_id": 1},
        {**common, "profiling_name": "nccl:broadcast", "time_created_ns": 20_000, "state": "completed", "retired": True,
         "time_discovered_completed_ns": 60_000, "collective_seq_id": 2},
        {**common, "profiling_name": "nccl:all_gather", "time_created_ns": 100_000, "state": "started", "retired": False,
         "time_discovered_completed_ns": None, "collective_seq_id": 3},
        {**common, "profiling_name": "nccl:all_reduce", "time_created_ns": 150_000, "state": "scheduled", "retired": False,
         "time_discovered_completed_ns": None, "collective_seq_id": 4, "pg_id": 1},
    ]  # fmt: skip
    (tmp_path / "dump.pickle").write_bytes(pickle.dumps({"version": "2.10", "pg_config": {}, "entries": entries}))
    assert opstrobe("convert", "dump.pickle", "out.json", cwd=tmp_path).returncode == 0
    trace = json.loads((tmp_path / "out.json").read_text())
    rows = [entry for entry in trace["traceEvents"] if entry["ph"] == "X"]
    spans = {
        row["args"]["collective_seq_id"]: (round(row["dur"] * 1000), row["args"].get("finished", True)) for row in rows
    }
    assert {row["args"]["Call stack"] for row in rows} == {"c10d::launch(int, x);train.py(8): step;"}
    assert spans == {1: (50_000, True), 2: (40_000, True), 3: (50_000, False), 4: (0, False)}
    assert "does not end" in opstrobe("validate", "dump.pickle", cwd=tmp_path).stdout
