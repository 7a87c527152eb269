# SPDX-License-Identifier: Apache-2.0
"""Questions in SQL: figures equal to those of the other surfaces, several traces, errors, the command and its shell."""

import csv
import gc
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

import opstrobe

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

from opstrobe.query import database, schema, tables  # noqa: E402


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A training of three steps, with all that can be recorded."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path_factory.mktemp("sql") / "train.json.gz"
    profile = opstrobe.profile(
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
        schedule=opstrobe.schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: prof.export_chrome_trace(str(path)),
    )
    with profile as prof:
        for _ in range(4):
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    return path


@pytest.fixture
def trace(recorded):
    return opstrobe.read(recorded)


def rank_file(folder, rank, events):
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{i % 3}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": rank + 1}
        for i in range(events)
    ]
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": rows}))
    return path


def command(*words, **options):
    done = subprocess.run(["opstrobe", "sql", *map(str, words)], capture_output=True, text=True, timeout=120, **options)
    return done.returncode, done.stdout, done.stderr


# --- figures ----------------------------------------------------------------------------------------------------------


def test_operators_have_the_sums_of_key_averages(trace):
    found = trace.sql(
        "select name, count(*), sum(dur_ns) from events where category = 'cpu_op' and not hidden group by 1"
    ).fetchall()
    averages = {row.key: (row.count, row.cpu_time_total) for row in trace.key_averages(include_python_functions=False)}
    compared = 0
    for name, count, total_ns in found:
        if name in averages and name.startswith("aten::") and averages[name][0] == count:
            assert averages[name][1] == pytest.approx(total_ns / 1000)
            compared += 1
    assert compared > 5


def test_steps_are_those_of_views(trace):
    shown = trace.views()["steps"]["breakdown"]["rows"]
    found = trace.sql(
        "select step, dur_ns, data_loading_ns + forward_ns + backward_ns + optimizer_ns + other_ns from steps"
    ).fetchall()
    assert len(found) == len(shown) == 3
    assert all(length == phases for _, length, phases in found)
    assert sorted(length / 1000 for _, length, _ in found) == pytest.approx(sorted(row["total"] for row in shown))


def test_modules_and_lines_are_those_of_the_commands(trace, recorded):
    rows = {row["path"]: row for row in trace.module_summary().rows()}
    found = trace.sql("select module, calls, host_ns from modules where calls > 0").fetchall()
    assert len(found) == 4
    for module, calls, host_ns in found:
        assert (rows[module]["calls"], rows[module]["host_ns"]) == (calls, host_ns)
    printed = subprocess.run(
        ["opstrobe", "lines", "--limit", "0", "--format", "csv", recorded], capture_output=True, text=True, check=True
    )
    lines = {
        (row["file"], int(row["line"])): float(row["with_calls"]) for row in csv.DictReader(printed.stdout.splitlines())
    }
    found = trace.sql("select file, line, host_ns from lines").fetchall()
    assert found and {(file, line): ns / 1000 for file, line, ns in found} == pytest.approx(lines)


def test_memory_sums_to_what_is_left(trace):
    ((left, records),) = trace.sql("select sum(bytes), count(*) from memory where not out_of_memory").fetchall()
    assert records > 10 and isinstance(left, int)
    assert left == sum(trace.to_arrow("memory")["bytes"].to_pylist())
    assert trace.sql("select count(*) from events where module = '0'").fetchall()[0][0] > 0


def written(folder, rows, **about):
    path = folder / "made.json"
    path.write_text(json.dumps({**about, "traceEvents": rows}))
    return opstrobe.read(path)


def event(name, ts, dur, cat="cpu_op", tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def test_collectives_have_the_bandwidth_of_analyze(tmp_path):
    message = {"dtype": "BFloat16", "In msg nelems": 1000, "Out msg nelems": 4000, "Group size": 4}
    rows = [
        event("ncclDevKernel_AllGather", 10, 4, "kernel", 7, **message, **{"Collective name": "_allgather_base"}),
        event("gloo:all_reduce", 30, 5),
        event("gemm", 40, 4, "kernel", 7),
    ]
    trace = written(tmp_path, rows, distributedInfo={"rank": 2, "world_size": 4, "backend": "nccl"}, job="run 7")
    assert trace.sql(
        "select name, on_device, group_size, message_bytes, bus_bytes / dur_ns from collectives"
    ).fetchall() == [
        ("_allgather_base", True, 4, 2000, 8000 * 0.75 / 4000),
        ("gloo:all_reduce", False, None, None, None),
    ]
    assert trace.sql("select rank, world_size, backend, job_id, events, complete from ranks").fetchall() == [
        (2, 4, "nccl", "run 7", 3, True)
    ]


def test_compile_events(tmp_path):
    rows = [
        event("ProfilerStep#3", 0, 100, "user_annotation"),
        event("inductor_compile (dynamo_timed)", 10, 5, "user_annotation"),
        event("Torch-Compiled Region: 2/1", 20, 5),
        event("Torch-Compiled Region: !0/2/4", 40, 5),
        event("## Call CompiledFxGraph fxyz ##", 21, 2, "user_annotation"),
        event("Torch-Compiled Region: 2/1", 30, 5, "gpu_user_annotation", 7),
        event("Torch-Compiled", 60, 5),
    ]
    found = written(tmp_path, rows).sql("select kind, name, frame, recompile, step from compile_events").fetchall()
    assert found == [
        ("phase", "inductor_compile", None, None, 3),
        ("region", "2/1", 2, 1, 3),
        ("graph", "fxyz", None, None, 3),
        ("region", "!0/2/4", 2, 4, 3),
    ]


def test_processes(tmp_path):
    rows = [
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "args": {"labels": "CPU"}},
        {**event("aten::mm", 0, 5), "pid": 7},
    ]
    assert written(tmp_path, rows).sql("select pid, name, labels from processes").fetchall() == [(7, "python", "CPU")]


def test_shapes_are_json(trace):
    shapes = trace.sql("select distinct input_shapes from events where name = 'aten::addmm'").fetchall()
    assert [8, 16] in [shape for (text,) in shapes for shape in json.loads(text)]


# --- tables -----------------------------------------------------------------------------------------------------------


def test_tables_are_documented_and_typed(trace):
    assert len(schema.tables()) == 15
    for declared in schema.tables():
        table = trace.to_arrow(declared["id"])
        assert table.schema.names == [column["name"] for column in declared["columns"]]
        for column in declared["columns"]:
            field = table.schema.field(column["name"])
            assert field.metadata[b"meaning"].decode() == column["about"]
            assert field.nullable == column["nullable"]
        table.validate(full=True)


def test_polars_has_the_same_rows(trace):
    """The columns come through Arrow; texts are categories there."""
    frame = trace.to_polars("events")
    rows = trace.sql("select name, count(*), sum(dur_ns)::bigint from events group by 1 order by 1").fetchall()
    sums = frame.group_by(pl.col("name").cast(pl.String)).agg(pl.len(), pl.col("dur_ns").sum()).sort("name")
    assert sums.rows() == rows and frame.shape == (trace.to_arrow("events").num_rows, len(frame.columns))


def test_table_of_some_columns(trace):
    assert trace.to_arrow("events", ["dur_ns", "name"]).schema.names == ["dur_ns", "name"]
    assert (
        trace.to_polars("kernels", ["name"]).columns == list(trace.to_pandas("kernels", ["name"]).columns) == ["name"]
    )
    assert trace.to_arrow("events", []).num_rows == trace.to_arrow("events").num_rows
    with pytest.raises(ValueError, match="table 'events' has no column 'x'"):
        trace.to_arrow("events", ["x"])
    with pytest.raises(ValueError, match="unknown table 'x'"):
        trace.to_arrow("x")
    with pytest.raises(TypeError):
        trace.to_arrow("events", [3])


def test_columns_stay_in_a_version_of_the_schema(recorded):
    """A table or column that is removed, renamed or changes its type or unit needs a new version, with a list of its columns; one that
    is added is appended to the list."""
    path = pathlib.Path(__file__).with_name(f"schema_version_{schema.version()}.txt")
    declared = [
        f"{table['id']}.{column['name']} {column['type']} {column.get('unit', '-')}"
        for table in schema.tables()
        for column in table["columns"]
    ]
    assert sorted(path.read_text().splitlines()) == sorted(declared)
    for table in schema.tables():
        metadata = opstrobe.read(recorded).to_arrow(table["id"]).schema.metadata
        assert metadata == {b"opstrobe.schema_version": str(schema.version()).encode()}
    printed = subprocess.run(
        ["opstrobe", "sql", "--schema", "steps"], capture_output=True, text=True, check=True
    ).stdout
    assert f"in every table (version {schema.version()} of the schema):" in printed


def test_error_for_an_unknown_table_names_ours(recorded):
    with pytest.raises(duckdb.CatalogException, match="The tables are events, kernels"):
        opstrobe.read(recorded).sql("select * from nothing")
    with pytest.raises(duckdb.CatalogException, match='Did you mean "steps"'):
        opstrobe.read(recorded).sql("select * from stepz")


def test_error_for_an_unknown_column_names_the_nearest(recorded, tmp_path):
    status, _, errors = command("select durns from events", recorded)
    assert (status, errors) == (
        1,
        "opstrobe sql: unknown column 'durns' in events; did you mean dur_ns? '.schema events' lists the columns\n",
    )
    for query in (
        "select e.backward from steps e",
        "select steps.backward from steps",
        "select 1 from steps where backward > 1",
    ):
        _, _, errors = command(query, recorded)
        assert "unknown column 'backward' in steps; did you mean backward_ns?" in errors, query
    _, _, errors = command("select zzzz from events join steps using (step)", recorded)
    assert "unknown column 'zzzz' in events, steps; '.schema events' and '.schema steps' list the columns" in errors


def test_commands_of_the_shell_as_a_query(recorded, tmp_path):
    for words in ([".hidden.json"], ["./none.json"]):
        assert command(*words, recorded)[0] != 0
    tables = command(input=".tables\n")[1]
    assert command(".tables", recorded)[:2] == command(".tables")[:2] == (0, tables)
    assert command(".schema steps", recorded)[1] == command("--schema", "steps")[1]
    status, _, errors = command(".schema none", recorded)
    assert status == 1 and "unknown table 'none'" in errors
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            ["opstrobe", "sql", ".schema", recorded], stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")
    status, _, errors = command(".tabels", recorded)
    assert status == 1 and "unknown command '.tabels'; .help lists the commands" in errors


def test_table_outlives_its_trace(recorded):
    table = opstrobe.read(recorded).to_arrow("events")
    gc.collect()
    assert "aten::addmm" in table["name"].unique().to_pylist()


def test_only_columns_that_are_read_are_computed(trace):
    asked = []

    class Watched:
        def __init__(self, trace):
            self.trace = trace

        def rank(self, path):
            return None

        def table(self, name, columns):
            asked.append((name, sorted(columns)))
            return self.trace.table(name, columns)

    traces = database.Database([])
    source = database._Input("x")
    source.trace = Watched(trace.trace)
    traces._inputs = [source]

    def columns_of(query):
        asked.clear()
        list(traces.run(query))
        return asked[:]

    assert columns_of("select sum(dur_ns) from events where name like 'a%'") == [("events", ["dur_ns", "name"])]
    assert columns_of("select count(*) from events")[0][1] in ([], ["id"])
    assert len(columns_of("from events")[0][1]) > 15
    assert len(columns_of("select e from events e")[0][1]) > 15
    assert {name for name, _ in columns_of("select * from kernels join events on operator_id = events.id")} == {
        "kernels",
        "events",
    }
    traces.close()


# --- several traces ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1 << 30])
def test_several_traces_are_one_table(tmp_path, monkeypatch, kept):
    monkeypatch.setattr(database, "_KEPT_BYTES", kept)
    paths = [rank_file(tmp_path, rank, 300) for rank in (0, 1)]
    found = opstrobe.sql(
        "select rank, path, count(*), sum(dur_ns) from events group by all order by 1", paths
    ).fetchall()
    assert found == [(0, str(paths[0]), 300, 300_000), (1, str(paths[1]), 300, 600_000)]
    joined = opstrobe.sql("select count(*) from events a join events b on a.rank = b.rank and a.id = b.id", paths)
    assert joined.fetchall() == [(600,)]


def test_rows_of_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BATCH_ROWS", 64)
    path = rank_file(tmp_path, 0, 1000)
    found = opstrobe.sql("select name, count(*), min(id), max(id) from events group by 1 order by 1", path).fetchall()
    assert found == [("op0", 334, 0, 999), ("op1", 333, 1, 997), ("op2", 333, 2, 998)]


def test_columns_that_are_not_read_take_no_memory(tmp_path):
    path = rank_file(tmp_path, 0, 70_000)
    schema = tables.schema_of("events")
    (batch,) = tables.read_rows(opstrobe.read(path).trace, "events", str(path), schema, ["dur_ns"])
    batch.validate(full=True)
    columns = dict(zip(schema.names, batch.columns))
    assert {columns.pop(name).null_count for name in ("dur_ns", "path", "rank")} == {0}
    assert {column.null_count for column in columns.values()} == {70_000}
    addresses = {buffer.address for column in columns.values() for buffer in column.buffers() if buffer and buffer.size}
    assert len(addresses) <= 3


def test_a_query_imports_no_pandas(recorded):
    """It would take longer than most queries. pyarrow imports it for many of its functions."""
    program = f"""
import sys
from opstrobe.query.database import Database
rows = [*Database([{str(recorded)!r}]).run("select rank, path, name, module from events")]
assert rows[0].num_rows > 100 and "pandas" not in sys.modules"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_errors_name_the_file(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("{]")
    with pytest.raises(ValueError, match="bad.json"):
        opstrobe.sql("select count(*) from events", [rank_file(tmp_path, 0, 3), bad])
    with pytest.raises(FileNotFoundError):
        opstrobe.sql("select count(*) from events", tmp_path / "none.json")
    with pytest.raises(ValueError, match="the query is empty"):
        opstrobe.sql("-- nothing", [])
    with pytest.raises(duckdb.Error, match="nothing"):
        opstrobe.sql("select nothing from events", [])


# --- the command ------------------------------------------------------------------------------------------------------

STEPS = "select step, dur_ns from steps order by step"


def test_formats_have_the_same_rows(recorded, tmp_path):
    status, printed, _ = command("--format", "json", STEPS, recorded)
    rows = json.loads(printed)
    assert status == 0 and [row["step"] for row in rows] == [1, 2, 3]
    _, printed, _ = command("--format", "csv", STEPS, recorded)
    assert [list(map(int, row)) for row in list(csv.reader(printed.splitlines()))[1:]] == [
        list(row.values()) for row in rows
    ]
    _, printed, _ = command("--format", "markdown", STEPS, recorded)
    assert printed.splitlines()[2] == f"| 1 | {rows[0]['dur_ns']} |"
    _, printed, _ = command(STEPS, recorded)
    assert all(str(row["dur_ns"]) in printed for row in rows)
    status, printed, _ = command("-o", tmp_path / "steps.parquet", STEPS, recorded)
    assert (status, printed) == (0, "")
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(tmp_path / "steps.parquet").to_pylist() == rows


def test_limit_of_rows(recorded):
    _, printed, _ = command("--limit", "4", "select id from events", recorded)
    assert "4 shown" in printed
    _, printed, _ = command("--limit", "0", "select id from events", recorded)
    assert "shown" not in printed


def test_failure_leaves_the_old_file(recorded, tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("old")
    status, _, errors = command("-o", output, "select nothing from steps", recorded)
    assert status == 1 and "nothing" in errors
    assert output.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_misuse_is_explained(recorded, tmp_path):
    status, _, errors = command("selec", recorded)
    assert status == 2 and "'selec' is neither a query nor a file" in errors
    status, _, errors = command("select 1")
    assert status == 2 and "no trace is named" in errors
    status, _, errors = command("--format", "parquet", STEPS, recorded)
    assert status == 2 and "--output" in errors
    status, _, errors = command("select 1", tmp_path / "none.json")
    assert (status, errors) == (1, f"opstrobe sql: cannot open '{tmp_path}/none.json': no such file or directory\n")
    status, _, errors = command("--schema", "none")
    assert status == 2 and "unknown table 'none'" in errors


def test_incomplete_traces_are_named(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(rank_file(tmp_path, 0, 9).read_text()[:-40])
    status, printed, errors = command("--format", "csv", "select count(*) from events", path)
    assert status == 0 and int(printed.splitlines()[1]) in (8, 9)
    assert f"{path}: the text ends early" in errors


def test_schema_says_what_columns_mean():
    status, printed, _ = command("--schema", "steps")
    assert status == 0
    assert "  backward_ns        bigint   part of the backward pass, ns\n" in printed
    assert "  path               varchar  file of the trace\n" in printed


def test_without_duckdb_says_what_to_install(recorded, tmp_path):
    (tmp_path / "duckdb.py").write_text("raise ImportError('no', name='duckdb')")
    status, _, errors = command(STEPS, recorded, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (status, errors) == (1, "opstrobe sql: SQL needs duckdb: pip install 'opstrobe[sql]'\n")


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_the_schema_needs_no_other_package(tmp_path, package):
    (tmp_path / f"{package}.py").write_text(f"raise ImportError('no', name='{package}')")
    without = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for words in (["--schema", "steps"], ["--schema"], ["--schema", "none"]):
        assert command(*words, env=without) == command(*words)
    script = ".tables\n.schema steps\n"
    assert command(env=without, input=script) == command(input=script)
    status, printed, errors = command(env=without, input=".schema steps\nselect 1;\n.tables\n")
    assert status == 1 and "backward_ns" in printed and "kernels " in printed
    assert errors == f"opstrobe sql: SQL needs {package}: pip install 'opstrobe[sql]'\n"


def test_an_interrupted_query_has_no_traceback(recorded):
    query = "select sum(a.dur_ns * b.dur_ns % 7 + c.dur_ns % 3) from events a, events b, events c, events d"
    words = ["opstrobe", "sql", query, recorded]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=listen
    ) as process:
        while "duckdb" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.05)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        try:
            printed, errors = process.communicate(timeout=120)
        finally:
            process.kill()  # else the end of the block would wait for it
    assert (process.returncode, printed, errors) == (130, "", "")


def listen():
    """Background jobs ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_closed_pipe_is_not_an_error(recorded):
    line = f"opstrobe sql --format csv 'from events' {recorded} | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("id,name")
    assert "Traceback" not in done.stderr


# --- the shell --------------------------------------------------------------------------------------------------------


def test_script_of_statements_and_commands(recorded):
    text = (
        ".tables\nselect count(*) as steps -- all; of them\nfrom steps; -- three\nselect nothing;\n.nothing\n.schema 'x\n"
        f".open {recorded}\n.open\n.mode csv\nselect max(step) as last, ';' as text\nfrom steps"
    )
    status, printed, errors = command(recorded, input=text)
    assert status == 1
    assert "an event of the trace" in printed
    assert "│     3 │" in printed.replace("int64", "") and printed.endswith("last,text\n3,;\n")
    reasons = errors.splitlines()
    assert "nothing" in reasons[0] and [reason for reason in reasons if "opstrobe sql: " in reason][1:] == [
        "opstrobe sql: unknown command '.nothing'; .help lists the commands",
        "opstrobe sql: No closing quotation",
        "opstrobe sql: usage: .open TRACE...",
    ]


def test_words_that_other_shells_have(recorded):
    status, printed, errors = command(recorded, input="help\nselect\n1 as quit;\nEXIT;\nselect nothing;\n")
    assert status == 0, errors
    assert printed.startswith("A statement of SQL ends with a semicolon.") and "│ quit  │" in printed
    assert command(recorded, input="quit\nselect nothing;\n") == (0, "", "")


def test_script_writes_in_the_format_that_is_selected(recorded, tmp_path):
    assert command("--format", "csv", recorded, input="select 1 as a;\nselect 2 as b;\n")[:2] == (0, "a\n1\nb\n2\n")
    (tmp_path / "q.sql").write_text(f"{STEPS};\n")
    script = f".mode json\n.output {tmp_path}/steps.json\n.read {tmp_path}/q.sql\n.output\n.mode csv\nselect 1 as a;\n.exit\nno"
    assert command(recorded, input=script) == (0, "a\n1\n", "")
    assert [row["step"] for row in json.loads((tmp_path / "steps.json").read_text())] == [1, 2, 3]
    status, _, errors = command(recorded, input=f".read {tmp_path}/none.sql\n.mode xml\n.limit x\n.timer\n")
    assert (status, errors.splitlines()) == (
        1,
        [
            f"opstrobe sql: cannot open '{tmp_path}/none.sql': no such file or directory",
            "opstrobe sql: invalid mode 'xml' (choose from text, csv, json, markdown)",
            "opstrobe sql: usage: .limit N",
            "opstrobe sql: usage: .timer on|off",
        ],
    )
    status, printed, _ = command("--format", "csv", recorded, input=".timer on\nselect 1 as a;\n")
    assert status == 0 and re.fullmatch(r"a\n1\n\d[\d.]* (s|ms|µs)\n", printed)
    (tmp_path / "loop.sql").write_text(f".read {tmp_path}/loop.sql\n")
    assert "reads itself" in command(recorded, input=f".read {tmp_path}/loop.sql\n")[2]


def test_output_follows_links_and_replaces_no_device(recorded, tmp_path):
    """A device was replaced by a file if the user may write to its directory, and so was a link."""
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    for _ in range(2):
        assert command("-o", link, "select 1 as a", recorded)[0] == 0
        assert link.is_symlink() and target.read_text() == "a\n1\n"
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        assert command("-o", pipe, "select 1 as a", recorded)[0] == 0
        assert reader.stdout.read() == "a\n1\n"
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "pipe.csv", "target.csv"]


def test_output_appends_to_a_redirected_file(recorded, tmp_path):
    """DuckDB alone would open the file again and truncate it."""
    output = tmp_path / "out.csv"
    with open(output, "w") as file:
        file.write("before\n")
        file.flush()
        words = ["opstrobe", "sql", "--format", "csv", "select 1 as a; select id from events limit 20000", recorded]
        assert subprocess.run([*map(str, words)], stdout=file, timeout=120).returncode == 0
    assert output.read_text().startswith("before\na\n1\nid\n0\n")


def test_sources_of_a_command(recorded, tmp_path):
    (tmp_path / "traces").mkdir()
    for rank in (0, 1):
        rank_file(tmp_path / "traces", rank, 5)
    query = "select count(*) as n from events"
    assert command("--format", "csv", query, tmp_path / "traces")[:2] == (0, "n\n10\n")
    assert command("--format", "csv", query, tmp_path / "traces" / "*1.json")[:2] == (0, "n\n5\n")
    text = (tmp_path / "traces" / "rank1.json").read_text()
    assert command("--format", "csv", query, "-", input=text)[:2] == (0, "n\n5\n")
    assert command("-", input=text)[::2] == (
        2,
        "opstrobe sql: '-' needs a query: standard input is the trace; see 'opstrobe sql --help'\n",
    )
    (tmp_path / "empty").mkdir()
    assert command(query, tmp_path / "empty")[::2] == (
        1, f"opstrobe sql: no traces in directory '{tmp_path}/empty'\n"
    )  # fmt: skip


def test_copies_of_recordings_are_traces_of_a_directory(tmp_path):
    copy = tmp_path / "dumps" / "last.oprec"
    copy.parent.mkdir()
    with opstrobe.black_box(spill=tmp_path / "box", sample_ms=0):
        torch.ones(2) + 1
        done = subprocess.run(["opstrobe", "dump", str(os.getpid()), "-o", copy], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    query = "select count(*) as n from events where name = 'aten::add'"
    assert command("--format", "csv", query, copy.parent)[:2] == (0, "n\n1\n")


def test_shell_completes_and_remembers(recorded, tmp_path):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb", "INPUTRC": "/dev/null"}
    leader, follower = pty.openpty()
    shell = subprocess.Popen(
        [sys.executable, "-m", "opstrobe.query.command", str(recorded)],
        stdin=follower, stdout=follower, stderr=follower, env=environment, close_fds=True,
    )  # fmt: skip
    os.close(follower)
    seen = b""

    def until(text):
        nonlocal seen
        while text not in seen:
            seen += os.read(leader, 4096)
        seen = seen[seen.index(text) + len(text) :]

    until(b"sql> ")
    os.write(leader, b"sel\t")  # only words that begin a statement, not columns such as self_ns
    until(b"select")
    os.write(leader, b" max(optimizer\t")
    until(b"optimizer_ns")
    os.write(leader, b") is not null as known from steps;\n")
    until(b"true")
    until(b"sql> ")
    os.write(leader, b"select steps.data_l\t")
    until(b"data_loading_ns")
    os.write(leader, b" is not null as known from steps;\n")
    until(b"true")
    until(b"sql> ")
    os.write(leader, b".quit\n")
    assert shell.wait(60) == 0
    os.close(leader)
    assert "select max(optimizer_ns) is not null" in (tmp_path / "opstrobe" / "sql_history").read_text()
