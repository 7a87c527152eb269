# SPDX-License-Identifier: Apache-2.0
"""Archives: their files read by other programs, writers that are killed or meet, compaction, retention, trends."""

import concurrent.futures
import datetime
import gzip
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import threading

import pytest

import opstrobe

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")
pytest.importorskip("polars")

import polars  # noqa: E402
import pyarrow.dataset  # noqa: E402
import pyarrow.parquet  # noqa: E402

import opstrobe.archive  # noqa: E402
from opstrobe.archiving import add as adding  # noqa: E402
from opstrobe.archiving import compact, location, trend  # noqa: E402
from opstrobe.archiving.add import Adder  # noqa: E402
from opstrobe.archiving.database import ArchiveDatabase  # noqa: E402
from opstrobe.archiving.location import Location  # noqa: E402

DAY = 86_400_000_000
START = 1_790_000_000_000_000  # microseconds: 2026-09-21


def made(folder, rank=0, day=0, steps=4, step_us=1000, slow=None, name=None):
    """A trace of some steps, each with operators, a call, its kernel and a collective; `slow`: microseconds of one more operator."""
    rows, base = [], START + day * DAY
    for step in range(steps):
        at = base + step * step_us
        rows += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": step_us},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at + 10, "dur": 100 + rank},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 20, "dur": 5,
             "args": {"correlation": step + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 40, "dur": 300,
             "args": {"correlation": step + 1, "device": 0, "stream": 7}},
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 8, "ts": at + 400, "dur": 50,
             "args": {"device": 0, "stream": 8}},
        ]  # fmt: skip
        if slow:
            rows.append(
                {"ph": "X", "cat": "cpu_op", "name": "aten::sort", "pid": 1, "tid": 1, "ts": at + 500, "dur": slow}
            )
    path = folder / (name or f"rank{rank}.day{day}.json.gz")
    about = {"distributedInfo": {"rank": rank, "world_size": 8}, "traceEvents": rows}
    path.write_bytes(gzip.compress(json.dumps(about).encode()))
    return path


def listed(location, *words):
    """The rows of `opstrobe archive list`."""
    status, printed, errors = command("list", location, "--format", "json", *words)
    assert status == 0, errors
    table = json.loads(printed)["table"]
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def command(*words):
    done = subprocess.run(["opstrobe", "archive", *map(str, words)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def rows(place, query):
    return opstrobe.archive.sql(place, query).fetchall()


EVENTS = "select rank, count(*), sum(dur_ns) from events group by 1 order by 1"


@pytest.fixture
def archive(tmp_path):
    place = tmp_path / "archive"
    paths = [made(tmp_path, rank) for rank in range(3)]
    opstrobe.archive.add(place, paths, job="llama-70b", run="r1", commit="abc")
    return place


# --- files ------------------------------------------------------------------------------------------------------------


def test_rows_are_those_of_the_traces(archive, tmp_path):
    paths = sorted(tmp_path.glob("*.json.gz"))
    assert rows(archive, EVENTS) == opstrobe.sql(EVENTS, paths).fetchall()
    for table in ("events", "kernels", "steps", "collectives", "findings", "flows", "ranks", "metadata"):
        columns = ", ".join(f'"{name}"' for name in opstrobe.read(paths[0]).to_arrow(table).schema.names)
        query = f"select rank, {columns} from {table} order by all"
        assert rows(archive, query) == opstrobe.sql(query, paths).fetchall(), table
    assert rows(archive, "select count(*), any_value(job) from lines") == [(0, None)]
    assert rows(archive, 'select distinct job, date, run, "commit" from kernels') == [
        ("llama-70b", datetime.date(2026, 9, 21), "r1", "abc")
    ]


def test_other_programs_read_the_files(archive):
    files = f"{archive}/job=*/date=*/*/events.parquet"
    query = f"select rank, job, date::varchar, count(*) from read_parquet('{files}', hive_partitioning = true) group by all order by 1"
    assert duckdb.sql(query).fetchall() == [(rank, "llama-70b", "2026-09-21", 20) for rank in range(3)]
    tables = [
        pyarrow.parquet.read_table(path, partitioning=None) for path in archive.glob("job=*/date=*/*/kernels.parquet")
    ]
    assert sum(pyarrow.compute.sum(table["dur_ns"]).as_py() for table in tables) == 3 * 4 * 350_000
    assert polars.scan_parquet(files, hive_partitioning=True).select(polars.len()).collect().item() == 60


def test_rows_are_in_order_and_have_statistics(tmp_path):
    place = tmp_path / "archive"
    opstrobe.archive.add(place, made(tmp_path, steps=9000))
    (path,) = place.glob("job=*/date=*/*/events.parquet")
    file = pyarrow.parquet.ParquetFile(path)
    assert file.num_row_groups > 1
    table = file.read(["pid", "tid", "start_ns"])
    assert table.equals(table.sort_by([("pid", "ascending"), ("tid", "ascending"), ("start_ns", "ascending")]))
    step = file.schema_arrow.names.index("step")
    ranges = [file.metadata.row_group(i).column(step).statistics for i in range(file.num_row_groups)]
    assert sum(each.min <= 100 <= each.max for each in ranges) < len(ranges)
    assert {file.metadata.row_group(0).column(i).compression for i in range(file.metadata.num_columns)} == {"ZSTD"}


def test_size(tmp_path):
    place, path, draw = tmp_path / "archive", tmp_path / "t.json", random.Random(5)
    names = [f"aten::{letter}" for letter in "abcdefghijklmnop"]
    events, at = [], START
    for i in range(40_000):
        at += draw.gauss(40, 5)
        about = {
            "External id": i + 1,
            "Record function id": 0,
            "Ev Idx": i,
            "Fwd thread id": 0,
            "Sequence number": i // 3,
            "Input Dims": [[draw.choice([8, 16, 32]), draw.choice([64, 128])], [128, 64]],
            "Input type": ["float", "c10::BFloat16"],
        }
        events.append({"ph": "X", "cat": "cpu_op", "name": draw.choice(names), "pid": 1, "tid": 1, "ts": round(at, 1),
                       "dur": round(draw.gauss(20, 3), 1), "args": about})  # fmt: skip
    text = json.dumps({"traceEvents": events}, indent=1).encode()
    path.write_bytes(text)
    opstrobe.archive.add(place, path)
    size = sum(file.stat().st_size for file in place.glob("**/*.parquet"))
    assert size < len(gzip.compress(text)) / 2 and size < len(text) / 20


def test_url(tmp_path):
    place = f"memory://profiles-{tmp_path.name}"
    paths = [made(tmp_path, rank) for rank in range(2)]
    assert len(opstrobe.archive.add(place, paths)) == 2
    assert opstrobe.archive.add(place, paths) == []
    assert rows(place, EVENTS) == opstrobe.sql(EVENTS, paths).fetchall()
    location = Location(place)
    part = location.parts()[0]
    location.files.rm_file(location.path(part.path, "traces.parquet"))  # as a writer that was killed leaves it
    assert rows(place, "select count(*) from traces") == [(1,)]
    opstrobe.archive.add(place, paths)
    assert compact.compact(location) == (2, 1)
    assert rows(place, EVENTS) == opstrobe.sql(EVENTS, paths).fetchall()
    assert compact.remove(location, older_than=datetime.timedelta(days=-1)) == 1
    assert rows(place, "select count(*) from events") == [(0,)]


def test_location_may_be_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, second = made(tmp_path, steps=3), made(tmp_path, 1, steps=3)
    assert command("add", path)[:2] == (0, "1 trace added\n")
    assert command("add", path, second)[:2] == (0, "1 trace added, 1 already there\n")
    assert rows(tmp_path / "opstrobe-archive", "select count(*) from traces") == [(2,)]
    status, printed, _ = command("trend", "--by", "date")
    assert status == 0 and printed.startswith("date")
    query = "select count(*) as events from events"
    shown = command("sql", query, "--format", "csv")
    assert shown == command("sql", "opstrobe-archive", query, "--format", "csv") == (0, "events\n30\n", "")
    for words in (["add"], ["add", "opstrobe-archive"]):
        assert command(*words)[0] == 2 and "no trace given" in command(*words)[2]
    monkeypatch.setenv("OPSTROBE_ARCHIVE", str(tmp_path / "other"))
    assert "other' is not an archive" in command("trend")[2]
    assert command("add", path)[0] == 0 and (tmp_path / "other").is_dir()


# --- writers ----------------------------------------------------------------------------------------------------------


def test_adding_imports_no_pandas(tmp_path):
    program = f"""
import sys
import opstrobe.archive
assert opstrobe.archive.add({str(tmp_path / "archive")!r}, {[str(made(tmp_path, rank)) for rank in range(2)]!r})
assert "pandas" not in sys.modules"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_traces_added_at_once_have_the_run_of_the_first(tmp_path):
    """Whichever is read first."""
    paths = [made(tmp_path, 0, steps=3000), *(made(tmp_path, rank) for rank in range(1, 8))]
    paths.insert(3, tmp_path / "none.json")
    found = list(Adder(Location(tmp_path / "archive", create=True), "default").add(list(map(str, paths))))
    assert isinstance(found.pop(3), FileNotFoundError)
    assert all(is_new for _, is_new in found)
    assert rows(tmp_path / "archive", "select trace, run, rank from traces order by rank") == [
        (name, found[0][0], rank) for rank, (name, _) in enumerate(found)
    ]


def test_large_traces_are_added_one_by_one(tmp_path, monkeypatch):
    small, compressed = tmp_path / "t.json", tmp_path / "t.json.gz"
    small.write_bytes(b" " * 100)
    compressed.write_bytes(b" " * 100)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert [adding._threads(list(map(str, paths))) for paths in ([small] * 9, [small], [])] == [4, 1, 1]
    monkeypatch.setattr(adding, "_TOGETHER_BYTES", 2000)
    assert [adding._threads([str(path)] * 9) for path in (small, compressed)] == [4, 1]


def test_a_trace_is_added_once(archive, tmp_path):
    assert opstrobe.archive.add(archive, tmp_path, job="llama-70b") == []
    assert len(opstrobe.archive.add(archive, tmp_path, job="other")) == 3
    assert rows(archive, "select job, count(*) from traces group by 1 order by 1") == [("llama-70b", 3), ("other", 3)]


def test_a_trace_is_known_by_its_events(archive, tmp_path):
    plain = tmp_path / "again.json"
    plain.write_bytes(gzip.decompress((tmp_path / "rank0.day0.json.gz").read_bytes()) + b"\n")
    spaced = tmp_path / "spaced.json"
    spaced.write_text(json.dumps(json.loads(plain.read_text()), indent=1))
    other = made(tmp_path, rank=0, day=1, name="other.json.gz")
    assert command("add", archive, plain, spaced, other, "--job", "llama-70b")[1] == "1 trace added, 2 already there\n"
    assert (
        command("add", tmp_path / "new", plain, spaced, "--job", "llama-70b")[1] == "1 trace added, 1 already there\n"
    )
    opstrobe.archive.add(archive, made(tmp_path, rank=7, name="seven.json.gz"), job="llama-70b")
    compact.compact(Location(archive))
    assert opstrobe.archive.add(archive, tmp_path, job="llama-70b") == []
    assert rows(archive, "select count(*) from traces") == [(5,)]


def test_traces_without_a_date(tmp_path):
    """They are kept under the date of their file, or of today, which the archive says."""
    undated = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": 2}]}
    (tmp_path / "boot.json").write_text(json.dumps(undated))
    os.utime(tmp_path / "boot.json", (1_700_000_000, 1_700_000_000))  # 2023-11-14
    (tmp_path / "stacks.folded").write_text("main;work 10\n")
    os.utime(tmp_path / "stacks.folded", (0, 0))
    place = tmp_path / "archive"
    _, printed, errors = command("add", place, tmp_path / "boot.json", tmp_path / "stacks.folded", made(tmp_path))
    assert printed == "3 traces added\n"
    assert f"'{tmp_path}/boot.json' and 1 more do not say when they were recorded" in errors
    today = datetime.datetime.now(datetime.timezone.utc).date()
    assert rows(place, "select dated_by, date from traces order by 1") == [
        ("added", today),
        ("file", datetime.date(2023, 11, 14)),
        ("recording", datetime.date(2026, 9, 21)),
    ]
    undated = [row for row in listed(place) if row["path"].endswith(("boot.json", "folded"))]
    assert sorted(row["start"] for row in undated) == ["2023-11-14", str(today)]  # no time of day


@pytest.mark.parametrize(
    "words", [["archive", "add", "{}", "{trace}"], ["sql", "select 1", "{}"], ["archive", "list", "{}"]]
)
def test_unknown_protocols_are_explained(tmp_path, words):
    trace = made(tmp_path)
    done = subprocess.run(
        ["opstrobe", *(word.format("foo://bucket/x", trace=trace) for word in words)], capture_output=True, text=True
    )
    assert (
        done.returncode == 1
        and "unknown protocol 'foo' in 'foo://bucket/x' (choose from s3, gs and abfs" in done.stderr
    )
    done = subprocess.run(
        ["opstrobe", *(word.format("abfs://bucket/x", trace=trace) for word in words)], capture_output=True, text=True
    )
    if not importlib.util.find_spec("adlfs"):
        assert done.stderr.endswith("cannot open 'abfs://bucket/x': abfs:// needs adlfs: pip install adlfs\n")


def test_killed_writers(tmp_path):
    """ARCHIVE_KILLS: how often; `make soak` kills 1,000 times."""
    paths = [made(tmp_path, rank, steps=200) for rank in range(6)]
    opstrobe.archive.add(tmp_path / "reference", paths, job="test")
    program = pathlib.Path(__file__).with_name("archive_writer.py")
    kills = os.environ.get("ARCHIVE_KILLS", "30")
    done = subprocess.run(
        [sys.executable, program, tmp_path / "archive0", tmp_path / "reference", kills, *paths],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    print(done.stderr)
    place = done.stdout.strip()
    assert rows(place, EVENTS) == opstrobe.sql(EVENTS, paths).fetchall()
    for folder in os.scandir(os.path.join(place, "_staging")):
        os.utime(folder.path, (0, 0))
    compact.compact(Location(place))
    assert os.listdir(os.path.join(place, "_staging")) == []


def test_writers_at_once(tmp_path):
    place = tmp_path / "archive"
    paths = [made(tmp_path, rank) for rank in range(6)]
    begin = threading.Barrier(2)

    def write(order):
        begin.wait()
        return opstrobe.archive.add(place, order, job="test")

    with concurrent.futures.ThreadPoolExecutor(2) as writers:
        added = [*writers.map(write, [paths, paths[::-1]])]
    assert sorted(added[0] + added[1]) == sorted({*added[0], *added[1]}) and len(added[0] + added[1]) == 6
    assert rows(place, EVENTS) == opstrobe.sql(EVENTS, paths).fetchall()


def test_bad_files_do_not_stop_the_others(tmp_path):
    (tmp_path / "bad.json").write_text("{]")
    made(tmp_path)
    status, printed, errors = command(
        "add", tmp_path / "archive", tmp_path / "bad.json", tmp_path / "rank0.day0.json.gz"
    )
    assert (status, printed) == (1, "1 trace added, 1 failed\n") and "bad.json" in errors
    assert os.listdir(tmp_path / "archive" / "_staging") == []


def test_failures_leave_no_empty_archive(tmp_path):
    place = tmp_path / "archive"
    (tmp_path / "bad.json").write_text("{]")
    status, printed, errors = command("add", place, tmp_path / "none.json", tmp_path / "bad.json")
    assert (status, printed) == (1, "0 traces added, 2 failed\n")
    assert "none.json" in errors and "no such file" in errors and "bad.json" in errors
    assert not place.exists()
    (tmp_path / "empty").mkdir()
    status, _, errors = command("add", place, tmp_path / "empty")
    assert status == 1 and errors == f"opstrobe archive: no trace file in '{tmp_path}/empty'\n"
    assert not place.exists()
    with pytest.raises(FileNotFoundError):
        opstrobe.archive.add(place, tmp_path / "none.json")
    assert not place.exists()


@pytest.mark.parametrize("package", ["duckdb", "fsspec", "pyarrow"])
def test_missing_packages_are_named(archive, tmp_path, package):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / f"{package}.py").write_text(f"raise ImportError('no', name='{package}')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "without")}
    place = "memory://archive" if package == "fsspec" else archive  # directories need no fsspec
    for words in (["archive", "list", place], ["archive", "add", place, archive]):
        done = subprocess.run(["opstrobe", *words], capture_output=True, text=True, env=environment)
        message = f"opstrobe archive: archives need {package}: pip install 'opstrobe[archive]'\n"
        assert (done.returncode, done.stderr) == (1, message)
    done = subprocess.run(["opstrobe", "archive", "--help"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    done = subprocess.run(["opstrobe", "sql", "select 1", place], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and f" need {package}: pip" in done.stderr.replace(" needs ", " need "), done.stderr


def test_misuse_is_explained(archive, tmp_path):
    status, _, errors = command("list", tmp_path / "none")
    assert status == 1 and "is not an archive" in errors
    status, _, errors = command("add", tmp_path, archive)
    assert status == 1 and "a directory with other files" in errors
    status, _, errors = command("add", archive, tmp_path, "--job", "a/b")
    assert status == 1 and "invalid job 'a/b'" in errors
    status, _, errors = command("remove", archive, "--older-than", "soon")
    assert status == 1 and "invalid age 'soon'" in errors
    status, _, errors = command("trend", archive, "--metric", "speed")
    assert status == 1 and "choose from step_ms" in errors
    status, _, errors = command("sql", archive, "select nothing from steps")
    assert status == 1 and "nothing" in errors
    status, printed, _ = command("trend", archive, "--metric", "peak_mb")
    assert status == 0 and printed == (
        "no trace has peak_mb (opstrobe run --memory records it) and a commit; '--by date' also shows traces without one\n"
    )
    status, _, errors = command("lst", archive)
    assert status == 2 and errors == "opstrobe archive: 'lst' is not a command; did you mean 'list'?\n"
    (archive / "_opstrobe.json").write_text('{"format": 99}')
    status, _, errors = command("list", archive)
    assert status == 1 and "format 99" in errors


# --- the command ------------------------------------------------------------------------------------------------------


def test_list_and_sql(archive):
    assert [(row["rank"], row["run"], row["commit"]) for row in listed(archive)] == [(i, "r1", "abc") for i in range(3)]
    assert len(listed(archive, "--limit", 2)) == 2 and listed(archive, "--job", "none") == []
    status, printed, _ = command("list", archive, "--limit", 1)
    assert status == 0 and printed.split()[:3] == ["Job", "Run", "Commit"] and "and 2 more" in printed
    for words in (["opstrobe", "archive", "sql", archive, EVENTS], ["opstrobe", "sql", EVENTS, archive]):
        done = subprocess.run([*map(str, words), "--format", "csv"], capture_output=True, text=True)
        assert done.stdout.splitlines()[1] == "0,20,5820000", done.stderr


def test_the_recording_says_run_and_commit(tmp_path):
    path = tmp_path / "t.json"
    about = {
        "job": "torchrun 7",
        "recording": {"git_revision": "cafe"},
        "traceEvents": [{"ph": "X", "name": "a", "ts": START, "dur": 1, "pid": 1, "tid": 1}],
    }
    path.write_text(json.dumps(about))
    opstrobe.archive.add(tmp_path / "archive", path)
    assert rows(tmp_path / "archive", 'select run, "commit" from traces') == [("torchrun 7", "cafe")]


RUNS = "select run, list(rank order by rank) from traces group by run order by min(start_ns)"


def test_ranks_recorded_together_are_a_run(tmp_path):
    place = tmp_path / "archive"
    for day in (0, 1):
        for rank in (2, 0, 3, 1):
            # One after another, as by jobs that add their traces when they end.
            opstrobe.archive.add(place, made(tmp_path, rank, day), job="j")
    assert [ranks for _, ranks in rows(place, RUNS)] == [[0, 1, 2, 3], [0, 1, 2, 3]]
    (tmp_path / "other").mkdir()
    opstrobe.archive.add(place, [made(tmp_path / "other", rank, step_us=2000) for rank in (0, 4)], job="j")
    assert sorted(ranks for _, ranks in rows(place, RUNS)) == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 4]]
    opstrobe.archive.add(place, [made(tmp_path, rank, day=2, steps=1) for rank in (0, 1)], job="j", run="named")
    opstrobe.archive.add(place, made(tmp_path, 5, day=2, steps=1), job="j")
    assert rows(place, RUNS)[-1] == ("named", [0, 1, 5])
    compact.compact(Location(place))
    opstrobe.archive.add(place, made(tmp_path, 6, day=2, steps=1), job="j")
    assert rows(place, RUNS)[-1] == ("named", [0, 1, 5, 6])
    opstrobe.archive.add(place, made(tmp_path, 7, day=2, steps=1), job="another")
    assert rows(place, "select count(distinct run) from traces where job = 'another' or rank = 6") == [(2,)]


def test_run_adds_its_trace(tmp_path):
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(3) + 1\n")
    words = ["opstrobe", "run", "--archive", "profiles", "--job", "tiny", "train.py"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "added to 'profiles' as a trace of job 'tiny'" in done.stderr, done.stderr
    assert rows(tmp_path / "profiles", "select job, count(*) > 0 from events where name = 'aten::add' group by 1") == [
        ("tiny", True)
    ]
    (tmp_path / "profiles" / "_opstrobe.json").write_text("{}")
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (
        done.returncode == 0
        and "not added to 'profiles'" in done.stderr
        and "opstrobe archive add profiles" in done.stderr
    )


# --- compaction and retention -----------------------------------------------------------------------------------------


def test_compaction_keeps_all_rows(archive, tmp_path):
    made_later = [made(tmp_path, rank, day=1) for rank in range(2)]
    opstrobe.archive.add(archive, made_later, job="llama-70b")
    before = {
        table: rows(archive, f"select * from {table} order by all")
        for table in ("events", "traces", "steps", "findings")
    }
    status, printed, _ = command("compact", archive)
    assert (status, printed) == (0, "5 parts before, 2 after\n")
    assert {table: rows(archive, f"select * from {table} order by all") for table in before} == before
    assert len([*archive.glob("job=*/date=*/*/events.parquet")]) == 2
    assert compact.compact(Location(archive)) == (2, 2)
    assert opstrobe.archive.add(archive, made_later, job="llama-70b") == []


def test_killed_compaction_shows_no_row_twice(archive, monkeypatch):
    before = rows(archive, EVENTS)
    location = Location(archive)
    monkeypatch.setattr(Location, "remove", lambda self, part: None)  # it is killed before it removes what it joined
    compact.compact(location)
    assert len([*archive.glob("job=*/date=*/*/events.parquet")]) == 4
    assert rows(archive, EVENTS) == before
    monkeypatch.undo()
    location.clean()
    assert len([*archive.glob("job=*/date=*/*/events.parquet")]) == 1 and rows(archive, EVENTS) == before


def test_a_query_survives_compaction(archive):
    database = ArchiveDatabase(Location(archive))
    compact.compact(Location(archive))
    assert [row["rank"] for row in database.rows(EVENTS)] == [0, 1, 2]
    database.close()


def test_retention(archive, tmp_path):
    today = datetime.datetime.now(datetime.timezone.utc).timestamp()
    new = made(tmp_path, 5, day=(today * 1e6 - START) / DAY)
    opstrobe.archive.add(archive, new, job="llama-70b")
    status, printed, _ = command("remove", archive, "--older-than", "2d", "--job", "other")
    assert (status, printed) == (0, "0 parts removed\n")
    status, printed, _ = command("remove", archive, "--older-than", "2d")
    assert (status, printed) == (0, "3 parts removed\n")
    assert rows(archive, "select rank from traces") == [(5,)]


def test_an_object_store_that_does_not_answer_is_given_up(monkeypatch):
    answered = threading.Event()

    class Silent:
        protocol = "silent"

        def invalidate_cache(self):
            pass

        def exists(self, path):
            answered.wait()

    monkeypatch.setattr(location, "_open_url", lambda name: (Silent(), "x"))
    monkeypatch.setattr(location, "CONTACT_SECONDS", 0.1)
    try:
        with pytest.raises(
            location.LocationError, match="cannot open 'silent://x': no answer within 0.1 s; check the network"
        ):
            Location("silent://x")
    finally:
        answered.set()


# --- trends -----------------------------------------------------------------------------------------------------------


def test_trend_finds_the_commit_and_the_operator(tmp_path):
    place = tmp_path / "archive"
    draw = random.Random(3)
    for day in range(12):
        slow = 60 if day >= 7 else None
        path = made(tmp_path, day=day, step_us=1000 + draw.randrange(-8, 9) + (slow or 0), slow=slow)
        opstrobe.archive.add(place, path, commit=f"commit{day:02}")
    status, printed, errors = command("trend", place, "--format", "json")
    assert status == 0, errors
    found = json.loads(printed)
    assert [point["key"] for point in found["points"]] == [f"commit{day:02}" for day in range(12)]
    (change,) = found["changes"]
    assert change["key"] == "commit07" and change["after"] - change["before"] == pytest.approx(0.06, abs=0.012)
    (first,) = change["causes"]  # what did not change explains nothing
    assert (first["kind"], first["name"], first["before_ms"], first["after_ms"]) == ("operator", "aten::sort", 0, 0.06)
    status, printed, _ = command("trend", place)
    assert " 1  <- 999 µs -> 1.06 ms (+6." in printed and "0 -> 60.0 µs      each step  aten::sort" in printed
    status, printed, _ = command("trend", place, "--by", "date", "--metric", "operators")
    assert "2026-09-28" in printed and "1 -> 2 (+100 %)" in printed
    status, printed, _ = command("trend", place, "--metric", "kernel_ms")
    assert status == 0 and "no change that exceeds the noise" in printed


def test_trend_without_commits_says_what_shows_them(tmp_path):
    opstrobe.archive.add(tmp_path / "archive", made(tmp_path))
    _, printed, _ = command("trend", tmp_path / "archive")
    assert printed == "no trace has step_ms and a commit; '--by date' also shows traces without one\n"
    _, printed, _ = command("trend", tmp_path / "archive", "--by", "date")
    assert "2026-09-21" in printed


def test_noise_is_not_a_change():
    draw = random.Random(1)
    alarms = sum(bool(trend.jumps([draw.gauss(100, 2) for _ in range(30)])) for _ in range(200))
    assert alarms <= 4


def test_changes_of_three_times_the_noise_are_found():
    draw = random.Random(2)
    found = 0
    for _ in range(100):
        at = draw.randrange(6, 24)
        jumps = trend.jumps([draw.gauss(106 if i >= at else 100, 2) for i in range(30)])
        found += len(jumps) == 1 and abs(jumps[0].at - at) <= 2
    assert found >= 90
    two = trend.jumps([draw.gauss(100 + 20 * (10 <= i < 20), 1) for i in range(30)])
    assert [jump.at for jump in two] == [10, 20]
