# SPDX-License-Identifier: Apache-2.0
"""An archive and traces in an object store that speaks S3: a local server (moto), through s3fs."""

import contextlib
import datetime
import gzip
import json
import uuid

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("s3fs")
server = pytest.importorskip("moto.server")

import fsspec  # noqa: E402

import opstrobe  # noqa: E402
import opstrobe.archive  # noqa: E402
import opstrobe.fleet  # noqa: E402
from opstrobe.archiving import compact  # noqa: E402
from opstrobe.archiving.location import Location  # noqa: E402

SUMS = "select rank, count(*), sum(dur_ns) from events group by rank order by rank"


@pytest.fixture(scope="module")
def endpoint():
    started = server.ThreadedMotoServer("127.0.0.1", 0)
    started.start()
    yield "http://{}:{}".format(*started.get_host_and_port())
    started.stop()


@pytest.fixture
def bucket(endpoint, monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    fsspec.filesystem("s3").clear_instance_cache()
    name = f"test-{uuid.uuid4().hex}"
    fsspec.filesystem("s3").mkdir(name)
    return f"s3://{name}"


def write_rank(folder, rank):
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{i % 3}", "pid": 1, "tid": 1, "ts": 1_790_000_000_000_000 + 10 * i, "dur": rank + 1}
        for i in range(50)
    ]  # fmt: skip
    path = folder / f"rank{rank}.json.gz"
    about = {"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": rows}
    path.write_bytes(gzip.compress(json.dumps(about).encode()))
    return path


def rows(place, query=SUMS):
    return opstrobe.archive.sql(place, query).fetchall()


def test_archive(bucket, tmp_path):
    place, paths = f"{bucket}/profiles", [write_rank(tmp_path, rank) for rank in range(3)]
    assert len(opstrobe.archive.add(place, paths[:2], job="llama")) == 2
    assert len(opstrobe.archive.add(place, paths, job="llama")) == 1
    expected = opstrobe.sql(SUMS, paths).fetchall()
    assert rows(place) == expected
    assert rows(place, "select distinct job, date from events") == [("llama", datetime.date(2026, 9, 21))]
    location = Location(place)
    part = location.parts()[0]
    with contextlib.suppress(FileNotFoundError):
        location.files.rm_file(location.path(part.path, "traces.parquet"))  # as a writer that was killed leaves it
    assert len(rows(place, "select path from traces")) == 2
    opstrobe.archive.add(place, paths, job="llama")
    assert compact.compact(location) == (3, 1) and rows(place) == expected
    assert compact.remove(location, older_than=datetime.timedelta(days=-1)) == 1
    assert rows(place) == []


def test_handler(bucket):
    torch = pytest.importorskip("torch")
    with opstrobe.profile(on_trace_ready=opstrobe.tensorboard_trace_handler(f"{bucket}/traces")):
        torch.ones(3) + 1
    assert len(fsspec.filesystem("s3").ls(f"{bucket}/traces")) == 1
