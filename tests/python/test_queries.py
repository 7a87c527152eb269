# SPDX-License-Identifier: Apache-2.0
"""The queries of the manual: the same rows by DuckDB from traces and from an archive of them and by Polars (test_spark.py: by Spark), and the
figures of Opstrobe's views."""

import csv
import json
import statistics
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


# Figures of the remaining queries that a view or an analysis has too. Each function returns them in the form of the query's rows.


def median_of_steps(path, read, views):
    """Of all steps. The view leaves a slow first step out, and has no spread."""
    steps = views["steps"]
    rank = read.analyze("info")["value"].get("rank")
    median = median_total(steps)
    p95 = steps["p95"] / 1e3 if median == pytest.approx(steps["median"]) else None
    return [(rank, len(steps["rows"]), median / 1e3, p95, None)]


def median_total(steps):
    return statistics.median(row["total"] for row in steps["breakdown"]["rows"])


def long_steps(path, read, views):
    steps = views["steps"]
    longest = 2 * median_total(steps)
    return [(int(row["name"]), row["total"] / 1e3) for row in steps["breakdown"]["rows"] if row["total"] > longest]


def loading(path, read, views):
    rows = views["steps"]["phases"]["rows"]
    return [(int(row["name"]), 100 * row["data_loading"] / row["total"]) for row in rows]


def operators_and_shapes(path, read, views):
    """The view lists sizes without the inputs that have none, so only names, calls and times are compared."""
    rows = views["operators_by_input_shape"]["rows"]
    return {(row["name"], row["calls"], round(row["host_total"] * 1e3)) for row in rows}


def longest_calls(path, read, views):
    return {(row["name"], round(row["host_max"] * 1e3), row["calls"]) for row in views["operators"]["rows"]}


def time_of_devices(path, read, views):
    """By kind, which the view of kernels has in finer classes."""
    if not views["kernels_by_category"]:
        return []
    calls, total = {}, {}
    for row in views["kernels_by_category"]:
        kind = {"communication": "communication", "memory": "copy"}.get(row["category"], "compute")
        calls[kind] = calls.get(kind, 0) + row["calls"]
        total[kind] = total.get(kind, 0) + row["total"] / 1e3
    return [(0, kind, calls[kind], total[kind]) for kind in sorted(calls)]


def idle_times(path, read, views):
    if not views["kernels"]:
        return []
    table = read.analyze("idle_time_breakdown.interval_stats", include_last_profiler_step=True)["table"]
    sums = {}
    for row in (dict(zip(table["columns"], row)) for row in table["rows"]):
        count, total = sums.get((row["device"], row["stream"]), (0, 0))
        sums[row["device"], row["stream"]] = count + row["count"], total + row["count"] * (row["mean"] or 0) / 1e3
    return [(*stream, *figures) for stream, figures in sorted(sums.items())]


def short_kernels(path, read, views):
    if not views["kernels"]:
        return 0
    (found,) = read.analyze("cuda_kernel_launch_stats", include_last_profiler_step=True)["value"].values()
    return found["gpu_shorter_than_cpu"]


def runtime_calls(path, read, views):
    averages = read.key_averages(include_python_functions=False)
    return {row.key: (row.count, row.cpu_time_total / 1e3) for row in averages}


def collectives(path, read, views):
    if not views["communication"]:
        return []
    value = read.analyze("nccl_collectives", include_last_profiler_step=True)["value"]
    found = [(int(rank), dict(zip(table["columns"], row))) for rank, table in value.items() for row in table["rows"]]
    return [(rank, row["collective_name"], row["count"], row["dur"] / 1e3) for rank, row in found]


def bandwidth(path, read, views):
    if not views["communication"]:
        return []
    table = read.analyze("collective_bandwidth", include_last_profiler_step=True)["table"]
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    return [
        (row["collective_name"], row["msg_dtype"], row["group_size"], row["count"], row["bus_gb_per_s"]) for row in rows
    ]


def ranks(path, read, views):
    about = read.analyze("info")["value"]
    backend = about["metadata"].get("distributedInfo", {}).get("backend")
    return [
        (about.get("rank"), about.get("world_size"), about.get("host"), backend, about["events"], about["lost_records"])
    ]


def largest_allocations(path, read, views):
    sizes = [row["size"] for device in views["memory"]["events"].values() for row in device["largest"]]
    return sorted(sizes, reverse=True)


def events_of_tracks(path, read, views):
    """All but marks of the recording, whose tracks have no numbers."""
    about = read.analyze("info")["value"]
    return about["events"] - sum(about["events_by_kind"].get(kind, 0) for kind in ("Trace", "mark"))


def near(rows, expected, digits=1e-9):
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected):
        for found, figure in zip(row, wanted):
            assert figure is None or found == (
                pytest.approx(figure, rel=digits) if isinstance(figure, float) else figure
            )


def contained(rows, expected):
    assert rows and {*rows} <= expected


VIEWS = {
    "Median, 95th percentile and spread of a step on each rank": (median_of_steps, near),
    "Steps that take twice as long as the median": (long_steps, near),
    "Share of each step in which the host waits for its batch": (loading, near),
    "Time of devices by what the work is for": (time_of_devices, near),
    "Idle time between kernels of a stream": (idle_times, lambda rows, expected: near(rows, expected, 1e-3)),
    "Time in collective operations on each rank: the rank with the least waits least, and makes the others wait": (collectives, near),
    "Bus bandwidth of collective operations": (bandwidth, lambda rows, expected: near(rows, expected, 0.02)),
    "Ranks, where they ran and what was lost": (ranks, near),
    "Kernels shorter than the call that launches them": (
        short_kernels,
        lambda rows, expected: near([[sum(calls for _, calls in rows)]], [[expected]]),
    ),
    "Calls of the runtime": (
        runtime_calls,
        lambda rows, expected: near([row[1:] for row in rows], [expected[row[0]] for row in rows]),
    ),
    "The largest allocations": (
        largest_allocations,
        lambda rows, expected: near([[row[1]] for row in rows[: len(expected)]], [[size] for size in expected[: len(rows)]]),
    ),
    "Threads and streams, with their numbers of events": (
        events_of_tracks,
        lambda rows, expected: near([[sum(row[3] for row in rows)]], [[expected]]),
    ),
    "Operators and their shapes": (
        operators_and_shapes,
        lambda rows, expected: contained([(row[0], row[2], round(row[3] * 1e6)) for row in rows], expected),
    ),
    "The longest call of each operator": (
        longest_calls,
        lambda rows, expected: contained([(row[0], round(row[1] * 1e6), row[2]) for row in rows], expected),
    ),
}  # fmt: skip
# Compared by the two tests above.
COMPARED_ABOVE = {
    "The slowest steps, with their phases", "Kernels by time", "Operators by self time", "Depth of calls", "Lines by self time",
    "Modules by time on the host and on devices", "Findings of all traces, by gain", "Kernels of each operator",
    "Peak of what the allocator of each device has given out (`opstrobe memory` adds blocks from before the recording)",
}  # fmt: skip
# No view has these figures.
ONLY_IN_SQL = {
    "Time of operators in each step", "Operators that a line calls with more than one shape", "Calls directly inside each operator",
    "Operators that only some steps call", "Work that waits longest for its stream after its launch", "Copies by size and direction",
    "Backward nodes with the operators that they belong to", "Phases of torch.compile, and regions that it compiled again",
}  # fmt: skip


def test_each_query_is_compared_or_has_no_view():
    assert sorted([*VIEWS, *COMPARED_ABOVE, *ONLY_IN_SQL]) == sorted(QUERIES)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
@pytest.mark.parametrize("title", VIEWS)
def test_other_figures_are_those_of_views(title, path):
    figures, compare = VIEWS[title]
    read = opstrobe.read(path)
    compare(answer(title, path), figures(path, read, read.views()))


def test_the_same_rows_by_pyarrow():
    import pyarrow.compute

    table = opstrobe.read(TRACES[0]).to_arrow("events")
    operators = table.filter((pyarrow.compute.field("category") == "cpu_op") & ~pyarrow.compute.field("hidden"))
    sums = operators.select(["name", "self_ns"]).group_by("name").aggregate([("self_ns", "sum"), ("self_ns", "count")])
    found = {row["name"]: (row["self_ns_count"], row["self_ns_sum"] / 1e6) for row in sums.to_pylist()}
    for name, calls, self_ms, _ in answer("Operators by self time", TRACES[0]):
        assert found[name] == (calls, pytest.approx(self_ms)), name
