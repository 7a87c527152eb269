# SPDX-License-Identifier: Apache-2.0
"""The queries of the manual: each has rows, the same from traces and from an archive of them, and the figures of Opstrobe's views."""

import pathlib
import re

import pytest

import opstrobe

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

import opstrobe.archive  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "manual" / "queries.md"
QUERIES = {
    title.strip(" :\n"): query
    for title, query in re.findall(
        r"\n([^\n]+)\n\n```sql\n(.*?)```", PAGE.read_text() if PAGE.exists() else "", re.DOTALL
    )
}
TRACES = [ROOT / "web/tests/traces/train.pt.trace.json.gz", ROOT / "tests/fuzz/analyze/training.json"]
pytestmark = pytest.mark.skipif(not QUERIES, reason="no manual next to the tests")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    place = tmp_path_factory.mktemp("queries") / "archive"
    opstrobe.archive.add(place, TRACES)
    return place


def test_there_are_thirty():
    assert len(QUERIES) >= 30


def close(left, right):
    return left == right or (isinstance(left, float) and left == pytest.approx(right, rel=1e-9))


@pytest.mark.parametrize("title", QUERIES)
def test_query(title, archive):
    ours = opstrobe.sql(QUERIES[title], TRACES)
    rows, columns = ours.fetchall(), ours.columns
    archived = opstrobe.archive.sql(archive, QUERIES[title])
    found = archived.fetchall()
    assert archived.columns == columns and len(found) == len(rows)
    assert all(close(a, b) for left, right in zip(found, rows) for a, b in zip(left, right, strict=True))


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
    depths = answer("Depth of calls", path)
    assert sum(count for _, count in depths) == len(opstrobe.read(path).to_arrow("events"))
    modules = answer("Modules by time on the host and on devices", path)
    assert {row["path"]: row["host_ns"] for row in opstrobe.read(path).module_summary().rows()}.items() >= {
        row[0]: round(row[3] * 1e6) for row in modules
    }.items()


def test_the_same_rows_by_pyarrow():
    import pyarrow.compute

    table = opstrobe.read(TRACES[0]).to_arrow("events")
    operators = table.filter((pyarrow.compute.field("category") == "cpu_op") & ~pyarrow.compute.field("hidden"))
    sums = operators.select(["name", "self_ns"]).group_by("name").aggregate([("self_ns", "sum"), ("self_ns", "count")])
    found = {row["name"]: (row["self_ns_count"], row["self_ns_sum"] / 1e6) for row in sums.to_pylist()}
    for name, calls, self_ms, _ in answer("Operators by self time", TRACES[0]):
        assert found[name] == (calls, pytest.approx(self_ms)), name
