# SPDX-License-Identifier: Apache-2.0
"""Traces and archives on a real Spark cluster of two workers, and the analyses that DuckDB and Spark share."""

import gzip
import json
import pathlib
import sys

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")
pytest.importorskip("pyspark")

from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import opstrobe  # noqa: E402
import opstrobe.archive  # noqa: E402
import opstrobe.fleet  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINING = ROOT / "tests/fuzz/analyze/training.json"


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local-cluster[2,1,512]")
            .config("spark.executor.memory", "512m")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def write_rank(folder, rank):
    """Four steps with an all-reduce; rank 1 comes to it last, so that the others spend more time in it."""
    rows = []
    for step in range(4):
        at = 1_790_000_000_000_000 + step * 1000
        wait = 50 if rank == 1 else 300 + rank
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 1000 + rank},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at + 10, "dur": 100 + rank},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 20, "dur": 5,
             "args": {"correlation": 2 * step + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 40, "dur": 300,
             "args": {"correlation": 2 * step + 1, "device": 0, "stream": 7}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 30, "dur": 5,
             "args": {"correlation": 2 * step + 2}},
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "pid": 0, "tid": 8, "ts": at + 700 - wait,
             "dur": wait, "args": {"correlation": 2 * step + 2, "device": 0, "stream": 8}},
        ]  # fmt: skip
    path = folder / f"rank{rank}.pt.trace.json.gz"
    about = {"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": rows}
    path.write_bytes(gzip.compress(json.dumps(about).encode()))
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for rank in range(3):
        write_rank(folder, rank)
    return folder


@pytest.fixture(scope="module")
def archive(tmp_path_factory, traces):
    place = tmp_path_factory.mktemp("spark") / "archive"
    opstrobe.archive.add(place, sorted(traces.iterdir()), job="llama", commit="abc")
    return place


def load(spark, table, *paths):
    return spark.read.format("opstrobe").option("table", table).load("\n".join(map(str, paths)))


def plain(rows):
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("table", ["events", "kernels", "steps", "ranks"])
def test_rows_are_those_of_duckdb(spark, table):
    found = load(spark, table, TRAINING)
    columns = found.columns
    order = ", ".join(f'"{name}"' for name in columns)
    expected = opstrobe.sql(f"select {order} from {table} order by all", TRAINING).fetchall()
    assert sorted(plain(found.collect()), key=repr) == sorted(expected, key=repr)


def test_each_file_is_a_partition_and_a_schema_selects_columns(spark, traces):
    assert load(spark, "kernels", traces).rdd.getNumPartitions() == 3
    rows = (
        spark.read.format("opstrobe").option("table", "kernels").schema("dur_ns bigint, rank bigint").load(str(traces))
    )
    assert rows.columns == ["dur_ns", "rank"]
    sums = rows.groupBy("rank").sum("dur_ns").orderBy("rank").collect()
    assert plain(sums) == [(0, 4 * 600_000), (1, 4 * 350_000), (2, 4 * 602_000)]


def test_archive(spark, archive):
    found = load(spark, "kernels", archive)
    assert {"job", "date", "trace", "commit"} <= set(found.columns)
    rows = found.where("job = 'llama'").groupBy("rank").count().orderBy("rank").collect()
    assert plain(rows) == [(0, 8), (1, 8), (2, 8)]
    assert plain(load(spark, "traces", archive).selectExpr("count(*)", "max(commit)").collect()) == [(3, "abc")]
    assert load(spark, "counters", archive).count() == 0


def close(left, right):
    return left == right or (isinstance(left, float) and left == pytest.approx(right, rel=1e-12))


@pytest.mark.parametrize("source", ["traces", "archive"])
@pytest.mark.parametrize("name", sorted(opstrobe.fleet.analyses()))
def test_analyses_are_equal_on_both(request, spark, name, source):
    place = request.getfixturevalue(source)
    here, there = opstrobe.fleet.analyze(name, place), opstrobe.fleet.analyze(name, place, spark=spark)
    assert here.column_names == there.column_names and here.num_rows == there.num_rows
    assert here.num_rows or name == "findings"
    for left, right in zip(here.to_pylist(), there.to_pylist()):
        assert all(close(left[key], right[key]) for key in left)


def test_straggler_and_unknown_analysis(traces):
    (row,) = opstrobe.fleet.analyze("stragglers", traces).to_pylist()
    assert row == {"rank": 1, "steps": 4, "waited_ms": pytest.approx(4 * 0.252)}
    with pytest.raises(ValueError, match="choose from steps, stragglers"):
        opstrobe.fleet.analyze("slow", traces)


def test_a_file_that_cannot_be_read_is_named(spark, tmp_path):
    (tmp_path / "a.json").write_text("not a trace")
    with pytest.raises(PySparkException, match="a.json"):
        load(spark, "events", tmp_path / "a.json").count()
    with pytest.raises(PySparkException, match="nowhere"):
        load(spark, "events", tmp_path / "nowhere").count()


def test_url(spark, traces):
    url = pathlib.Path(traces).as_uri()
    assert load(spark, "steps", url).count() == 12
