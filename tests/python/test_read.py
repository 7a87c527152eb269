# SPDX-License-Identifier: Apache-2.0
"""opstrobe.read: shared traces against Python's own reading of them, and profiles against their files.

The shared traces are next to the repository, or where OPSTROBE_TRACES says.
"""

import collections
import decimal
import gzip
import json
import os
import pathlib

import pytest

import opstrobe

FOLDER = pathlib.Path(
    os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces")
)
# Files next to the traces that are not traces: expected figures, an execution trace, a memory timeline.
TRACES = sorted(path for path in FOLDER.glob("**/*.json*") if "expected" not in path.name and path.name != "et.json.gz")
shared = pytest.mark.skipif(not TRACES, reason=f"no shared traces in {FOLDER}; OPSTROBE_TRACES names their folder")
each_trace = pytest.mark.parametrize("path", TRACES, ids=lambda path: str(path.relative_to(FOLDER)))


def load(path):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    document = json.loads(data, strict=False, parse_float=decimal.Decimal)
    return document if isinstance(document, dict) else {"traceEvents": document}


def nanoseconds(text):
    return int(decimal.Decimal(text) * 1000)


def is_memory(event):
    return event["name"] == "[memory]" and "Bytes" in event.get("args", {})


def is_hidden(event):
    """What events() leaves out: bookkeeping, sessions and their marks."""
    return event.get("cat") == "Trace" or ("cat" not in event and event["ph"] == "i")


@shared
@each_trace
def test_shared_trace(path):
    document = load(path)
    base = int(document.get("baseTimeNanoseconds", 0))
    spans = [e for e in document["traceEvents"] if e["ph"] in "Xi" and not is_memory(e)]
    read = opstrobe.read(path)
    read.trace.check()
    rows = read.trace.rows()
    assert len(rows) == len(spans)
    # In the order of the file, which each row knows.
    by_place = [e for e in document["traceEvents"]]
    categories = collections.Counter()
    for index, category, name, start_ns, end_ns in rows:
        event = by_place[index]
        assert name == event["name"]
        assert category == event.get("cat", "")
        assert start_ns == base + nanoseconds(event["ts"])
        assert end_ns - start_ns == nanoseconds(event.get("dur", 0))
        categories[category] += 1
    assert categories == collections.Counter(e.get("cat", "") for e in spans)
    assert sorted(index for index, *_ in rows) == [
        i for i, e in enumerate(by_place) if e["ph"] in "Xi" and not is_memory(e)
    ]


@shared
@each_trace
def test_shared_trace_comes_back(path, tmp_path):
    first = opstrobe.read(path)
    first.export_chrome_trace(tmp_path / "again.json")
    again = opstrobe.read(tmp_path / "again.json")
    again.trace.check()
    assert [row[1:] for row in again.trace.rows()] == [row[1:] for row in first.trace.rows()]
    assert again.key_averages().table() == first.key_averages().table()
    before = load(path)
    after = load(tmp_path / "again.json")
    for key in before.keys() - {"traceEvents", "traceName", "displayTimeUnit", "baseTimeNanoseconds"}:
        assert after[key] == before[key], key


def test_notes(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2},')
    read = opstrobe.read(path)
    assert [event.name for event in read.events()] == ["a"]
    assert {what for what, _, _ in read.notes} >= {"the text ends early; what came before is read"}
    assert repr(read) == f"<opstrobe.TraceFile {str(path)!r}: 1 event>"


def test_repr_separates_thousands(tmp_path):
    path = tmp_path / "a.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}
    path.write_text(json.dumps([event | {"ts": 2 * i} for i in range(1234)]))
    assert repr(opstrobe.read(path)).endswith(": 1,234 events>")


def test_refusals(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("nothing")
    with pytest.raises(ValueError, match=r"a\.json': byte 0: not a trace"):
        opstrobe.read(path)
    with pytest.raises(FileNotFoundError):
        opstrobe.read(tmp_path / "b.json")


def test_progress(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[" + " " * 5_000_000 + "]")
    seen = []
    opstrobe.read(path, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen) and seen[-1] == (5_000_002, 5_000_002)

    def stop(done, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        opstrobe.read(path, progress=stop)


def test_profile_comes_back(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    with opstrobe.profile(record_shapes=True, profile_memory=True, with_flops=True) as profile:
        for _ in range(3):
            with opstrobe.record_function("step \N{SNOWMAN}", "n=1"):
                loss = model(torch.randn(8, 16)).square().mean()
                loss.backward()
                torch._foreach_add_([torch.ones(2) for _ in range(40)], 1.0)
            profile.step()
    for name in ("a.json", "a.json.gz"):
        profile.export_chrome_trace(str(tmp_path / name))
        read = opstrobe.read(tmp_path / name)
        assert len(read.events()) == len(profile.events())
        for a, b in zip(profile.events(), read.events(), strict=True):
            for attribute in (
                "id",
                "name",
                "overload_name",
                "thread",
                "fwd_thread",
                "input_shapes",
                "concrete_inputs",
                "input_dtypes",
                "structured_input_shapes",
                "scope",
                "cpu_memory_usage",
                "self_cpu_memory_usage",
                "is_async",
                "sequence_nr",
                "flops",
                "activity_type",
                "flow_id",
                "flow_type",
                "flow_start",
                "device_resource_id",
                "cpu_time_total",
                "self_cpu_time_total",
            ):
                assert getattr(a, attribute) == getattr(b, attribute), (a.name, attribute)
            assert (a.time_range.start, a.time_range.end) == (b.time_range.start, b.time_range.end)
        for by_shape in (False, True):
            assert profile.key_averages(group_by_input_shape=by_shape).table(row_limit=-1) == read.key_averages(
                group_by_input_shape=by_shape
            ).table(row_limit=-1)


def test_jobs_of_mtia_take_no_time_of_the_cpu(tmp_path):
    """Their threads have no name that says what they are, and firmware's rows have no stream."""
    path = tmp_path / "trace.json"
    host = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 0, "dur": 10}
    call = "runFunction - job_prep_and_submit_for_execution"
    launch = {"cat": "mtia_runtime", "name": call, "ts": 2, "dur": 3, "args": {"correlation": 5}}
    job = {"cat": "mtia_ccp_events", "name": "job", "pid": 9, "tid": 4, "ts": 4, "dur": 100}
    firmware = {"cat": "mtia_ccp_events", "name": "firmware", "pid": 9, "tid": 801, "ts": 4, "dur": 50}
    path.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "traceEvents": [
                    host,
                    {**host, **launch},
                    {**host, **job, "args": {"stream": 102, "correlation": 5}},
                    {**host, **firmware, "args": {"direction": "DEVICE_TO_HOST"}},
                ],
            }
        )
    )
    rows = {row.key: row for row in opstrobe.read(path).key_averages()}
    assert [rows[name].self_cpu_time_total for name in ("aten::mm", call, "job", "firmware")] == [7, 3, 0, 0]
    assert [rows[name].self_device_time_total for name in ("aten::mm", call, "job", "firmware")] == [0, 0, 100, 50]
    assert sum(row.self_cpu_time_total for row in rows.values()) == 10
