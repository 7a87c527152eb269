# SPDX-License-Identifier: Apache-2.0
"""Traces and archives on a real Spark cluster of two workers, and the analyses that DuckDB and Spark share."""

import datetime
import gzip
import json
import pathlib
import random
import sys

import pytest
from manual_queries import QUERIES, TRACES, assert_equal, for_spark

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")
pytest.importorskip("pyspark")

import fsspec  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
from fsspec.implementations.local import LocalFileSystem  # noqa: E402
from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThanOrEqual  # noqa: E402

import opstrobe  # noqa: E402
import opstrobe.archive  # noqa: E402
import opstrobe.archiving.add  # noqa: E402
import opstrobe.fleet  # noqa: E402
import opstrobe.query.schema  # noqa: E402
import opstrobe.spark  # noqa: E402

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


def write_rank(folder, rank, steps=4):
    """Steps with an all-reduce; rank 1 comes to it last, so that the others spend more time in it."""
    rows, noise = [], random.Random(rank).random if steps > 4 else int
    for step in range(steps):
        at = 1_790_000_000_000_000 + step * 1000
        wait = 50 if rank == 1 else 300 + rank
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 1000 + rank},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at + 10, "dur": 100 + rank},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 20, "dur": 5,
             "args": {"correlation": 2 * step + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 40, "dur": 300 + noise(),
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


@pytest.fixture(scope="module")
def manual_tables(spark):
    for table in (str(declared["id"]) for declared in opstrobe.query.schema.tables()):
        load(spark, table, *TRACES).cache().createOrReplaceTempView(table)


@pytest.mark.skipif(not QUERIES, reason="no manual next to the tests")
@pytest.mark.parametrize("title", QUERIES)
def test_queries_of_the_manual(spark, manual_tables, title):
    assert_equal(plain(spark.sql(for_spark(QUERIES[title])).collect()), opstrobe.sql(QUERIES[title], TRACES).fetchall())


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


class CountingFiles(LocalFileSystem):
    """Local files at counted://, which counts the bytes that are read."""

    protocol = "counted"
    read = 0

    @classmethod
    def _strip_protocol(cls, path):
        return LocalFileSystem._strip_protocol(str(path).removeprefix("counted://"))

    def _open(self, path, mode="rb", **options):
        file = open(path, mode)  # noqa: SIM115
        original = file.read

        class Counted:
            def __getattr__(self, name):
                return getattr(file, name)

            def read(self, *size):
                data = original(*size)
                CountingFiles.read += len(data)
                return data

        return Counted()


@pytest.fixture(scope="module")
def long_archive(tmp_path_factory):
    """Four ranks with 2,000 steps in row groups of some 160, a part each."""
    folder = tmp_path_factory.mktemp("long")
    for rank in range(4):
        write_rank(folder, rank, steps=2000)
    place = folder / "archive"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opstrobe.archiving.add, "_GROUP_ROWS", 1000)
        opstrobe.archive.add(place, sorted(folder.glob("*.gz")), job="llama")
        opstrobe.archive.add(place, write_rank(folder, 9, steps=20), job="other")
    return place


def test_filters_select_parts_and_row_groups(long_archive):
    """Without a session: what executors read of each part."""
    fsspec.register_implementation("counted", CountingFiles, clobber=True)
    reader = opstrobe.spark.OpstrobeDataSource(
        {"path": str(long_archive), "table": "events", "pushdown": "true"}
    ).reader(None)
    columns = ["rank", "step", "name", "dur_ns"]

    def rows_of(filters):
        reader.pushFilters(filters)
        parts, CountingFiles.read = reader.partitions(), 0
        for part in parts:
            part.url = f"counted://{part.url}"
        batches = [batch for part in parts for batch in part.batches("events", columns)]
        rows = pyarrow.Table.from_batches(batches).select(columns) if batches else None
        return rows, len(parts), CountingFiles.read

    everything, parts, all_bytes = rows_of([])
    assert parts == 5 and everything.num_rows > 4 * 2000 * 6
    steps = [GreaterThanOrEqual(("step",), 100), LessThanOrEqual(("step",), 110)]
    some, parts, some_bytes = rows_of([EqualTo(("rank",), 3), *steps])
    wanted = everything.filter((pc.field("rank") == 3) & (pc.field("step") >= 100) & (pc.field("step") <= 110))
    assert some.num_rows == wanted.num_rows > 0 and some.sort_by("dur_ns").column("dur_ns") == wanted.sort_by(
        "dur_ns"
    ).column("dur_ns")
    _, _, end_bytes = rows_of([EqualTo(("rank",), 77)])  # what says where row groups are
    assert some_bytes - end_bytes < 0.1 * (all_bytes - end_bytes), (some_bytes, end_bytes, all_bytes)
    assert rows_of([EqualTo(("job",), "other")])[1] == 1 and rows_of([In(("job",), ("llama", "x"))])[1] == 4
    assert rows_of([GreaterThanOrEqual(("date",), datetime.date(2100, 1, 1))])[1] == 0
    assert rows_of([EqualTo(("name",), "gemm")])[0].num_rows == everything.num_rows  # texts are left to Spark


def test_filters_on_a_cluster(spark, long_archive):
    query = "rank = 3 and step between 100 and 110 and job = 'llama' and name = 'gemm'"
    plain_count = load(spark, "events", long_archive).where(query).count()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = (
            spark.read.format("opstrobe").option("table", "events").option("pushdown", "true").load(str(long_archive))
        )
        found = rows.where(query)
        assert found.count() == plain_count == 11
        assert found.rdd.getNumPartitions() == 4
        steps = opstrobe.fleet.analyze("steps", long_archive, spark=spark).to_pylist()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert [row["steps"] for row in steps] == [2000] * 4 + [20]


def test_locations_that_are_not_archives(monkeypatch, tmp_path, traces):
    with pytest.raises(FileNotFoundError, match=r"is not an archive.*pass a Spark session"):
        opstrobe.fleet.analyze("steps", pathlib.Path(traces).as_uri())
    (tmp_path / "_opstrobe.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "opstrobe.archiving.location", None)
    with pytest.raises(ImportError):
        opstrobe.fleet.analyze("steps", tmp_path)
    assert opstrobe.fleet.analyze("steps", traces).num_rows == 3


def test_url(spark, traces):
    url = pathlib.Path(traces).as_uri()
    assert load(spark, "steps", url).count() == 12
