# SPDX-License-Identifier: Apache-2.0
"""`.pftrace` by file name: Perfetto's own format, read back by its trace processor."""

import json
import threading
from collections import Counter

import pytest
from trace_processor import TraceProcessor

import opstrobe
from opstrobe import record_function

torch = pytest.importorskip("torch")

HOSTILE = ['quo"te', "tab\tand\nline", "gr\u00fc\u00df", "back\\slash", "nul\0in", "\udcff"]


@pytest.fixture(scope="module")
def recorded():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with opstrobe.profile(record_shapes=True, profile_memory=True) as prof:
        for name in HOSTILE:
            with record_function(name, "with args"):
                model(torch.randn(4, 8)).sum().backward()
                torch.cat([torch.ones(2), torch.zeros(3)])
        left, right = record_function("left"), record_function("right")
        left.__enter__()
        right.__enter__()
        left.__exit__(None, None, None)
        right.__exit__(None, None, None)
    prof.add_metadata_json("mine", '{"a": [1, 2.5, "x"]}')
    return prof


@pytest.fixture(scope="module")
def rows(recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "t.json"
    recorded.export_chrome_trace(path)
    return [row for row in json.loads(path.read_text())["traceEvents"] if row.get("cat") not in ("Trace", None)]


@pytest.fixture(scope="module", params=["pftrace", "pftrace.gz"])
def processor(recorded, request, tmp_path_factory, pytestconfig):
    path = tmp_path_factory.mktemp("pftrace") / f"t.{request.param}"
    recorded.export_chrome_trace(path)
    assert path.read_bytes().startswith(b"\x1f\x8b") == (request.param == "pftrace.gz")
    processor = TraceProcessor(pytestconfig.cache.mkdir("trace-processor"))
    processor.load(path)
    return processor


def test_pftrace_is_read_without_errors(processor):
    assert processor.import_errors() == {}


def test_pftrace_has_every_slice_at_its_nanosecond(processor, recorded):
    trace = recorded.profiler.trace
    expected = Counter((start, end - start) for _, _, _, start, end in trace.rows())
    expected[trace.start_ns, trace.stop_ns - trace.start_ns] += 1
    instants = "select count(*) as n from slice where name = '[memory]'"
    assert processor.query(instants)[0]["n"] > 0
    found = Counter((r["ts"], r["dur"]) for r in processor.query("select ts, dur from slice where name != '[memory]'"))
    assert found == expected


def test_pftrace_nests_as_the_tree_does(processor, recorded):
    query = "select s.name as name, p.name as parent from slice s left join slice p on s.parent_id = p.id where s.category = 'cpu_op'"
    found = Counter((row["name"], row["parent"]) for row in processor.query(query))
    tree = Counter(
        (e.trace_name, e.cpu_parent.trace_name if e.cpu_parent else None)
        for e in recorded.events()
        if e.activity_type == "cpu_op" and "\0" not in (e.cpu_parent.name if e.cpu_parent else "")
    )
    for (name, parent), count in tree.items():
        if parent is None or parent.startswith("aten"):
            assert found[name, parent] >= count, (name, parent)


def test_pftrace_has_names_of_any_kind(processor):
    names = {
        row["name"] for row in processor.query("select distinct name from slice where category = 'user_annotation'")
    }
    # The processor's text ends at a NUL, and invalid UTF-8 is replaced.
    assert names == {'quo"te', "tab\tand\nline", "gr\u00fc\u00df", "back\\slash", "nul", "\ufffd" * 3, "left", "right"}


def args_of(processor, name):
    query = (
        "select flat_key, string_value, int_value, display_value from args join slice using (arg_set_id) "
        f"where slice.name = '{name}' and slice.id = (select min(id) from slice where name = '{name}')"
    )
    return {row["flat_key"]: row["display_value"] for row in processor.query(query)}


def test_pftrace_has_the_arguments_of_the_chrome_trace(processor, rows):
    addmm = next(row for row in rows if row["name"] == "aten::addmm")
    args = args_of(processor, "aten::addmm")
    for key in ("External id", "Sequence number", "Fwd thread id"):
        assert args[f"debug.{key}"] == str(addmm["args"][key])
    # Lists are args of the same key, one an element.
    query = (
        "select key, display_value from args join slice using (arg_set_id) where slice.name = 'aten::addmm' "
        "and slice.id = (select min(id) from slice where name = 'aten::addmm') and flat_key = 'debug.Input Dims'"
    )
    found = {row["key"]: row["display_value"] for row in processor.query(query)}
    expected = {
        f"debug.Input Dims[{i}][{j}]": str(size)
        for i, sizes in enumerate(addmm["args"]["Input Dims"])
        for j, size in enumerate(sizes)
    }
    assert found == expected
    assert args_of(processor, 'quo"te')["debug.Args"] == "with args"


def test_pftrace_has_arrows(processor, rows, recorded, tmp_path):
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(path)
    arrows = sum(row["ph"] == "s" for row in json.loads(path.read_text())["traceEvents"])
    assert processor.query("select count(*) as n from flow")[0]["n"] == arrows > 0


def test_pftrace_has_memory_as_a_curve(processor, rows):
    values = [
        row["value"]
        for row in processor.query(
            "select value from counter join track on counter.track_id = track.id "
            "where track.name = 'Total Allocated' order by counter.id"
        )
    ]
    reports = [row["args"]["Total Allocated"] for row in rows if row["name"] == "[memory]"]
    assert [int(value) for value in values] == reports


def test_pftrace_has_threads_and_metadata(processor):
    threads = {row["tid"]: row["name"] for row in processor.query("select tid, name from thread where tid != 0")}
    assert threads[threading.get_native_id()] == "MainThread"
    args = args_of(processor, "PyTorch Profiler (0)")
    assert args["debug.record_shapes"] == "1"
    assert "debug.trace_id" in args


def test_pftrace_of_a_file_that_was_read(recorded, tmp_path, pytestconfig):
    recorded.export_chrome_trace(tmp_path / "t.json.gz")
    read = opstrobe.read(tmp_path / "t.json.gz")
    read.export_chrome_trace(tmp_path / "again.pftrace")
    processor = TraceProcessor(pytestconfig.cache.mkdir("trace-processor"))
    processor.load(tmp_path / "again.pftrace")
    assert processor.import_errors() == {}
    ops = "select count(*) as n from slice where category = 'cpu_op'"
    assert processor.query(ops)[0]["n"] == sum(
        category == "cpu_op" for _, category, *_ in recorded.profiler.trace.rows()
    )


def test_pftrace_failures_leave_the_old_file(recorded, tmp_path):
    with pytest.raises(FileNotFoundError):
        recorded.export_chrome_trace(tmp_path / "missing" / "t.pftrace")
    (tmp_path / "dir.pftrace").mkdir()
    with pytest.raises(OSError):
        recorded.export_chrome_trace(tmp_path / "dir.pftrace")
    assert [path.name for path in tmp_path.iterdir()] == ["dir.pftrace"]
