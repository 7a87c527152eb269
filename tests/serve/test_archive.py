# SPDX-License-Identifier: Apache-2.0
"""`opstrobe serve` of an archive: its tables are those of `opstrobe archive`, and its traces open, also without their files."""

import gzip
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import OPSTROBE, TIMEOUT_S, serving
from test_http_api import check

for package in ("duckdb", "pyarrow", "fsspec"):
    pytest.importorskip(package)

START = 1_790_000_000_000_000  # microseconds
DAY = 86_400_000_000


def made(folder, rank, day, slow):
    """A trace with steps, operators with arguments, launches, kernels, memory, counters and names."""
    rows, base = [], START + day * DAY
    for step in range(8):
        at = base + step * 2000
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 2, "ts": at, "dur": 1000 + slow + rank + day % 3},
            {"ph": "X", "cat": "cpu_op", "name": 'aten::mm "ä"', "pid": 1, "tid": 2, "ts": at + 10.125, "dur": 100.5,
             "args": {"External id": 7 + step, "Input Dims": [[2, 3], []], "Input type": ["float", ""], "Sequence number": step, "note": "x\\y"}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": at + 20, "dur": 5,
             "args": {"correlation": step + 1, "External id": 7 + step}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 40, "dur": 300,
             "args": {"correlation": step + 1, "device": 0, "stream": 7, "External id": 7 + step}},
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 1, "tid": 2, "ts": at + 50,
             "args": {"Addr": 4096, "Bytes": 64, "Total Allocated": 64 * (step + 1), "Total Reserved": 1024, "Device Type": 0, "Device Id": -1}},
        ]  # fmt: skip
        if slow:
            rows.append(
                {"ph": "X", "cat": "cpu_op", "name": "aten::sort", "pid": 1, "tid": 2, "ts": at + 500, "dur": slow}
            )
    rows += [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    ]
    path = folder / f"day{day}.rank{rank}.json.gz"
    about = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": rows}
    path.write_bytes(gzip.compress(json.dumps(about).encode()))
    return path


def command(*words):
    done = subprocess.run([OPSTROBE, *map(str, words)], capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    return json.loads(done.stdout)


def rows(reply):
    return [dict(zip(reply["table"]["columns"], row)) for row in reply["table"]["rows"]]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    for day in range(8):
        paths = [made(folder, rank, day, 400 if day >= 5 else 0) for rank in range(2)]
        words = ["--job", "llama", "--run", f"it's {day}", "--commit", f"c{day}"]
        subprocess.run(
            [OPSTROBE, "archive", "add", folder / "all", *paths, *words],
            check=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
    return folder / "all"


@pytest.fixture(scope="module")
def server(archive):
    with serving(archive) as running:
        yield running
        assert running.stop()[0] == 0


def test_tables_are_those_of_the_command(server, archive):
    listed = rows(check(server.json("archive"), "/archive"))
    assert rows(command("archive", "list", archive, "--format", "json")) == listed
    assert all(row["steps"] == 8 and row["duration_us"] > 14_000 for row in listed)
    points = rows(check(server.json("archive/trend", job="llama"), "/archive/trend"))
    trend = command("archive", "trend", archive, "--format", "json")
    absent = dict.fromkeys(("before", "change", "noise"))
    assert points == [absent | row for row in trend["points"]]
    (changed,) = [row for row in points if row["noise"] is not None]
    assert (
        changed["key"] == "c5" and changed["before"] == points[0]["level"] and changed["level"] == points[-1]["level"]
    )
    causes = rows(check(server.json("archive/causes", job="llama", key="c5"), "/archive/causes"))
    assert (causes[0]["kind"], causes[0]["name"], causes[0]["difference_ms"]) == (
        "operator",
        "aten::sort",
        pytest.approx(0.4),
    )
    (change,) = trend["changes"]
    assert causes == change["causes"] and change["change"] == changed["change"]
    assert rows(server.json("archive/causes", job="llama", key="c1")) == []
    steps = rows(check(server.json("archive/steps", job="llama", run="it's 6"), "/archive/steps"))
    assert [(row["rank"], row["step"], row["dur_us"]) for row in steps] == [
        (r, s, 1400 + r) for r in range(2) for s in range(8)
    ]
    assert {row["trace"] for row in steps} == {row["trace"] for row in listed if row["run"] == "it's 6"}


def test_errors(server):
    for path, status, message in (
        ("archive/trend?metric=no", 400, "invalid metric 'no'"),
        ("archive/trend?by=no", 400, "invalid group 'no'"),
        ("archive/trend?unknown=1", 400, "unknown parameter"),
        ("archive/traces/no", 404, "trace 'no' does not exist"),
        ("archive/traces/%27%20or%201=1", 404, "does not exist"),
        ("archive/steps?run=%27", 200, None),
        ("archive/trend?job=a%27b", 200, None),
    ):
        reply = server.api(path)
        assert reply.status == status, (path, reply.body)
        assert message is None or message in reply.json()["error"]["message"]
    assert server.json("archive/trend", job="llama")["table"]["rows"]  # it still answers


TABLES = ("events", "kernels", "steps", "memory", "flows", "tracks", "processes")


def test_a_trace_opens_with_and_without_its_file(server):
    listed = rows(server.json("archive"))
    kept, lost = listed[0], listed[1]
    first = check(server.json(f"archive/traces/{kept['trace']}"), "/archive/traces/{in_archive}")["id"]
    assert server.json(f"archive/traces/{kept['trace']}")["id"] == first
    original = pathlib.Path(lost["path"])
    before = {table: rows_of(original, table) for table in TABLES}
    moved = original.rename(original.with_suffix(".moved"))
    second = server.json(f"archive/traces/{lost['trace']}")["id"]
    moved.rename(original)
    paths = {trace["id"]: trace["path"] for trace in server.traces()}
    assert set(paths) == {first, second}
    for table in TABLES:
        assert rows_of(paths[second], table) == before[table], table
    assert os.path.islink(paths[first]) and not os.path.islink(paths[second])
    info = server.json(f"traces/{second}/info")["value"]
    assert (info["steps"], info["rank"], info["world_size"], info["memory_records"]) == (8, lost["rank"], 2, 8)


def rows_of(path, table):
    """All columns but ids and the path; JSON as values."""
    found = command(
        "sql", f"select * exclude (path) from {table} order by all", path, "--format", "json", "--limit", "0"
    )
    for row in found:
        for name in ("args", "input_shapes", "input_types"):
            if isinstance(row.get(name), str):
                row[name] = json.loads(row[name])
    return found


def test_files_go_when_it_ends(archive):
    with serving(archive) as server:
        trace = rows(server.json("archive"))[0]["trace"]
        server.json(f"archive/traces/{trace}")
        path = pathlib.Path(server.traces()[0]["path"])
        assert path.exists()
        assert server.stop(signal.SIGTERM)[0] == 0
    assert not path.exists() and not path.parent.parent.exists()


def test_locations_that_are_not_archives(tmp_path, archive):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "_opstrobe.json").write_text('{"format": 99}')
    for paths, code, message in (
        ([broken], 1, "has format 99"),
        ([archive, broken], 2, "only one can be shown"),
        (["nothing://there/x"], 1, "nothing"),
    ):
        done = subprocess.run(
            [OPSTROBE, "serve", *map(str, paths)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == code and message in done.stderr, done
    # An archive that is served has nothing to do with the traces next to it.
    with serving(archive, archive.parent / "day0.rank0.json.gz") as server:
        assert len(server.traces()) == 1 and len(rows(server.json("archive"))) == 16
