# SPDX-License-Identifier: Apache-2.0
"""Traces by column: Arrow's interface as pyarrow reads it, and pandas with and without pyarrow."""

import json

import pytest

import opstrobe

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

ROWS = [
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 5,
        "tid": 6,
        "ts": 10,
        "dur": 100.5,
        "args": {"External id": 3},
    },
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "launch",
        "pid": 5,
        "tid": 6,
        "ts": 20,
        "dur": 5,
        "args": {"correlation": 9},
    },
    {
        "ph": "X",
        "cat": "Kernel",
        "name": "gemm",
        "pid": 0,
        "tid": 7,
        "ts": 30,
        "dur": 50,
        "args": {"correlation": 9, "x": 1},
    },
    {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 5,
        "tid": 6,
        "ts": 200,
        "dur": 1,
        "args": {"Sequence number": 4},
    },
]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": ROWS}))
    return opstrobe.read(path)


def expected(trace):
    """The same from the rows that Trace.rows() gives one by one."""
    return [(name, category, start, end - start) for _, category, name, start, end in trace.trace.rows()]


def test_arrow_has_every_event(trace):
    table = trace.to_arrow()
    table.validate(full=True)
    columns = table.to_pydict()
    names = ("name", "category", "start_ns", "duration_ns")
    assert list(zip(*(columns[name] for name in names), strict=True)) == expected(trace)
    assert columns["tid"] == [6, 6, 7, 6]
    assert columns["parent"] == [None, 0, None, None]
    assert columns["correlation"] == [None, 9, 9, None]
    assert columns["sequence_nr"] == [None, None, None, 4]
    assert columns["external_id"][0] == 3
    assert "x" in columns["args"][2]


def test_arrow_without_copies(trace):
    """The batch outlives the trace it is made from."""
    batch = pyarrow.record_batch(trace.trace)
    rows = expected(trace)
    del trace
    assert batch.column("start_ns").to_pylist() == [row[2] for row in rows]
    assert batch.schema.field("parent").nullable and not batch.schema.field("name").nullable


def test_capsules_that_nobody_takes_are_freed(trace):
    for _ in range(100):
        trace.__arrow_c_stream__()
        trace.__arrow_c_schema__()
        trace.trace.__arrow_c_array__()
    pyarrow.RecordBatchReader.from_stream(trace)


def test_pandas_is_the_same_without_arrow(trace):
    ours, theirs = trace.to_pandas(), trace.to_arrow().to_pandas()
    assert list(ours.columns) == list(theirs.columns)
    for name in ours:
        left = [None if value is pandas.NA or value != value else value for value in ours[name]]
        right = [None if value is pandas.NA or value != value else value for value in theirs[name]]
        assert left == right, name
    assert ours.groupby("name", observed=True)["duration_ns"].sum()["aten::mm"] == 101500
    assert str(ours["parent"].dtype) == "Int64"


def test_names_that_are_not_utf_8(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(
        b'[{"ph":"X","cat":"cpu_op","name":"a\xff","ts":1,"dur":2},{"ph":"X","cat":"","name":"a\xfe","ts":3,"dur":1}]'
    )
    table = opstrobe.read(path).to_arrow()
    table.validate(full=True)
    assert table.to_pydict()["name"] == ["a\ufffd", "a\ufffd"]
    assert len(opstrobe.read(path).to_pandas()["name"].cat.categories) == 1


def test_an_empty_trace_is_a_table(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": []}')
    assert opstrobe.read(path).to_arrow().num_rows == 0
    assert len(opstrobe.read(path).to_pandas()) == 0


def test_a_recording_by_column(tmp_path):
    import torch

    with opstrobe.profile(record_shapes=True) as prof:
        torch.ones(3) @ torch.ones(3)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    frame = opstrobe.read(tmp_path / "trace.json").to_pandas()
    assert (frame["name"] == "aten::dot").sum() == 1
    inner = frame[frame["name"] == "aten::dot"].iloc[0]
    assert frame.iloc[int(inner["parent"])]["name"] == "aten::matmul"


def test_several_files_at_once(tmp_path, trace):
    files = opstrobe.read_all([trace.path] * 5)
    assert [file.trace.event_count for file in files] == [4] * 5
    with pytest.raises(OSError, match="missing"):
        opstrobe.read_all([trace.path, tmp_path / "missing.json"])


def test_a_profile_is_a_table_as_its_file_is(tmp_path):
    import torch

    with opstrobe.profile() as prof:
        torch.ones(3) @ torch.ones(3)
        with pytest.raises(RuntimeError, match="^cannot make a data frame: this profile is still recording$"):
            prof.to_pandas()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    file = opstrobe.read(tmp_path / "trace.json")
    assert prof.to_arrow().column("name").to_pylist() == file.to_arrow().column("name").to_pylist()
    assert list(prof.to_pandas()["duration_ns"]) == list(file.to_pandas()["duration_ns"])
    with pytest.raises(AssertionError, match="^cannot make a data frame: this profile has recorded nothing$"):
        opstrobe.profile().to_pandas()
