# SPDX-License-Identifier: Apache-2.0
"""The queries of the manual: the same rows by DuckDB from traces and from an archive of them and by Polars (test_spark.py: by Spark), and the
figures of Opstrobe's views."""

import csv
import json
import subprocess

import pytest
from manual_queries import QUERIES, TRACES, assert_equal, for_polars

import opstrobe

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

import pyarrow  # noqa: E402

import opstrobe.archive  # noqa: E402
from opstrobe.query.schema import tables  # noqa: E402
from opstrobe.query.tables import read_rows, schema_of  # noqa: E402

pytestmark = pytest.mark.skipif(not QUERIES, reason="no manual next to the tests")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    place = tmp_path_factory.mktemp("queries") / "archive"
    opstrobe.archive.add(place, TRACES)
    return place


def test_there_are_thirty():
    assert len(QUERIES) >= 30


@pytest.mark.parametrize("title", QUERIES)
def test_an_archive_has_the_rows_of_its_traces(title, archive):
    ours, archived = opstrobe.sql(QUERIES[title], TRACES), opstrobe.archive.sql(archive, QUERIES[title])
    assert archived.columns == ours.columns
    assert_equal(archived.fetchall(), ours.fetchall())


@pytest.fixture(scope="module")
def frames():
    """The tables of both traces as frames of Polars, through Arrow."""
    pl = pytest.importorskip("polars")
    found = {}
    for table in (str(declared["id"]) for declared in tables()):
        schema = schema_of(table)
        batches = [batch for path in TRACES for batch in read_rows(opstrobe.read(path).trace, table, str(path), schema)]
        frame = pl.from_arrow(pyarrow.Table.from_batches(batches, schema))
        found[table] = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    return found


def depths(pl, frames):
    """Without recursion, which the SQL of Polars does not have."""
    events = frames["events"].select("path", "id", "parent_id")
    level, counts = events.filter(pl.col("parent_id").is_null()), []
    while level.height:
        counts.append((len(counts), level.height))
        level = events.join(level.select("path", parent_id="id"), on=["path", "parent_id"], how="semi")
    return counts


def delays(pl, frames):
    """A quantile is a number in the SQL of Polars, not a list."""
    quantiles = [pl.col("delay_ns").quantile(share, "linear") for share in (0.5, 0.95, 1.0)]
    known = frames["kernels"].filter(pl.col("delay_ns").is_not_null())
    return known.group_by("device", "stream").agg(pl.concat_list(quantiles)).sort("device", "stream").rows()


def copies(pl, frames):
    """The SQL of Polars has no operator for a member of JSON."""
    found = frames["kernels"].filter(pl.col("work") == "copy").join(frames["events"], on=["path", "id"])
    size = pl.col("args").str.json_path_match("$.bytes").cast(pl.Int64).alias("bytes")
    sums = found.group_by("name", size).agg(pl.len().alias("copies"), (pl.col("dur_ns").sum() / 1000.0).alias("us"))
    return sums.sort("copies", "name", "bytes", descending=[True, False, False]).rows()


IN_POLARS = {
    "Depth of calls": depths,
    "Work that waits longest for its stream after its launch": delays,
    "Copies by size and direction": copies,
}


@pytest.mark.parametrize("title", QUERIES)
def test_polars_has_the_same_rows(title, frames):
    import polars as pl

    if title in IN_POLARS:
        rows = IN_POLARS[title](pl, frames)
    else:
        rows = pl.SQLContext(frames).execute(for_polars(QUERIES[title]), eager=True).rows()
    assert_equal(rows, opstrobe.sql(QUERIES[title], TRACES).fetchall())


def answer(title, path):
    return opstrobe.sql(QUERIES[title], path).fetchall()


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_figures_are_those_of_views(path):
    views = opstrobe.read(path).views()
    steps = answer("The slowest steps, with their phases", path)
    shown = sorted((row["total"] for row in views["steps"]["breakdown"]["rows"]), reverse=True)
    assert [row[1] * 1e3 for row in steps][: len(shown)] == pytest.approx(shown[:10])
    kernels = {row[0]: row[1:3] for row in answer("Kernels by time", path)}
    for row in (views["kernels"] or {"rows": []})["rows"]:
        if row["name"] in kernels:
            assert kernels.pop(row["name"]) == (row["calls"], pytest.approx(row["total"]))
    assert not kernels
    averages = {row.key: row for row in opstrobe.read(path).key_averages(include_python_functions=False)}
    operators = answer("Operators by self time", path)
    compared = [row for row in operators if row[0] in averages and averages[row[0]].count == row[1]]
    assert len(compared) > len(operators) / 2
    for name, _, self_ms, total_ms in compared:
        assert averages[name].self_cpu_time_total == pytest.approx(self_ms * 1e3), name
        assert averages[name].cpu_time_total == pytest.approx(total_ms * 1e3), name
    peaks = (views["memory"] or {"peaks": {}})["peaks"]  # with what lived before the recording
    title = next(title for title in QUERIES if title.startswith("Peak of"))
    for on_cpu, device, bytes_ in answer(title, path):
        assert 0 < bytes_ <= peaks["CPU" if on_cpu else f"GPU{device}"]
    assert sum(count for _, count in answer("Depth of calls", path)) == len(opstrobe.read(path).to_arrow("events"))
    modules = answer("Modules by time on the host and on devices", path)
    assert {row["path"]: row["host_ns"] for row in opstrobe.read(path).module_summary().rows()}.items() >= {
        row[0]: round(row[3] * 1e6) for row in modules
    }.items()


def shown(*words):
    done = subprocess.run(["opstrobe", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_figures_are_those_of_commands(path):
    lines = csv.DictReader(shown("lines", "--limit", "0", "--format", "csv", path).splitlines())
    expected = {(row["file"], int(row["line"])): (float(row["self"]), float(row["with_calls"])) for row in lines}
    found = {(row[0], row[1]): (row[3] * 1e3, row[4] * 1e3) for row in answer("Lines by self time", path)}
    assert found and all(found[line] == pytest.approx(expected[line]) for line in found)
    findings = json.loads(shown("advise", "--format", "json", path))["findings"]
    expected = {}
    for finding in findings:
        expected.setdefault(finding["id"], []).append(finding["predicted_gain_percent"])
    rows = answer("Findings of all traces, by gain", path)
    assert {row[0]: row[1] for row in rows} == {rule: len(gains) for rule, gains in expected.items()}
    for rule, _, percent in rows:
        gains = [gain for gain in expected[rule] if gain is not None]
        assert percent == (pytest.approx(sum(gains) / len(gains), abs=0.5) if gains else None), rule
    table = json.loads(shown("kernels", "--by-operator", "--limit", "0", "--format", "json", path))["table"]
    by_operator = {}
    for row in (dict(zip(table["columns"], row)) for row in table["rows"]):
        calls, total = by_operator.get(row["operator"], (0, 0))
        by_operator[row["operator"]] = (calls + row["calls"], total + row["total_us"])
    for operator, kernels, ms in answer("Kernels of each operator", path):
        if operator in by_operator:  # the command has no copies
            assert by_operator[operator] == (kernels, pytest.approx(ms * 1e3)), operator


def test_the_same_rows_by_pyarrow():
    import pyarrow.compute

    table = opstrobe.read(TRACES[0]).to_arrow("events")
    operators = table.filter((pyarrow.compute.field("category") == "cpu_op") & ~pyarrow.compute.field("hidden"))
    sums = operators.select(["name", "self_ns"]).group_by("name").aggregate([("self_ns", "sum"), ("self_ns", "count")])
    found = {row["name"]: (row["self_ns_count"], row["self_ns_sum"] / 1e6) for row in sums.to_pylist()}
    for name, calls, self_ms, _ in answer("Operators by self time", TRACES[0]):
        assert found[name] == (calls, pytest.approx(self_ms)), name
