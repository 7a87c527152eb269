# SPDX-License-Identifier: Apache-2.0
"""Archives and traces in object stores: local servers that speak S3 (moto, through s3fs) and GCS (gcp-storage-emulator, through gcsfs)."""

import contextlib
import datetime
import gzip
import json
import os
import socket
import subprocess
import sys
import uuid

import pytest

pytest.importorskip("duckdb")

import fsspec  # noqa: E402

import opstrobe  # noqa: E402
import opstrobe.archive  # noqa: E402
import opstrobe.fleet  # noqa: E402
from opstrobe.archiving import compact  # noqa: E402
from opstrobe.archiving.location import Location  # noqa: E402

SUMS = "select rank, count(*), sum(dur_ns) from events group by rank order by rank"


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("s3fs")
    started = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    started.start()
    yield {
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*started.get_host_and_port()),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    started.stop()


@pytest.fixture(scope="module")
def gs():
    pytest.importorskip("gcsfs")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    started = emulator.create_server("127.0.0.1", port, in_memory=True)
    started.start()
    yield {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}
    started.stop()


@pytest.fixture(params=["s3", "gs"])
def bucket(request, monkeypatch):
    """The URL of a bucket; environment variables say where its store is."""
    for name, value in request.getfixturevalue(request.param).items():
        monkeypatch.setenv(name, value)
    store = fsspec.filesystem(request.param)
    store.clear_instance_cache()
    url = f"{request.param}://test-{uuid.uuid4().hex}"
    fsspec.filesystem(request.param).mkdir(url)
    return url


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
    files, path = fsspec.core.url_to_fs(f"{bucket}/traces")
    assert len(files.ls(path)) == 1


def test_run_adds_its_trace(bucket, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(3) + 1\n")
    words = ["opstrobe", "run", "--archive", f"{bucket}/profiles", "--job", "tiny", "train.py"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert f"added to '{bucket}/profiles' as a trace of job 'tiny'" in done.stderr, done.stderr
    assert rows(f"{bucket}/profiles", "select job, count(*) from events where name = 'aten::add' group by 1") == [
        ("tiny", 1)
    ]
    listed = subprocess.run(
        ["opstrobe", "archive", "list", f"{bucket}/profiles"], capture_output=True, text=True, timeout=120
    )
    assert listed.returncode == 0 and "tiny" in listed.stdout, listed.stderr


def test_missing_buckets_and_objects_are_named(bucket, tmp_path):
    missing = f"{bucket[:2]}://no-bucket-{uuid.uuid4().hex}/profiles"
    for words in (
        ["archive", "list", missing],
        ["archive", "add", missing, write_rank(tmp_path, 0)],
        ["sql", "select 1", f"{bucket}/none"],
    ):
        done = subprocess.run(["opstrobe", *map(str, words)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert (missing if missing in words else f"{bucket}/none") in done.stderr, done.stderr


# gcsfs needs no key for a local server, and tries for a minute to reach a store.
@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID"])
def test_stores_that_refuse_are_named(bucket, name, tmp_path):
    environment = {
        **os.environ,
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        name: "http://127.0.0.1:9",
    }
    if name == "AWS_ACCESS_KEY_ID":
        environment = {
            key: value for key, value in environment.items() if not key.startswith("AWS_SECRET") and key != name
        }
    done = subprocess.run(
        ["opstrobe", "archive", "list", f"{bucket}/profiles"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr and f"'{bucket}/profiles'" in done.stderr, (
        done.stderr
    )


def test_errors_are_printed_once():
    program = """
import logging
from opstrobe.archiving import location
logging.getLogger("gcsfs.retry").error("a traceback")"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
