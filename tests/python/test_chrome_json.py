# SPDX-License-Identifier: Apache-2.0
"""Chrome JSON: what Perfetto, torch's own validator and a plain JSON reader make of the files."""

import gzip
import json
import os
import stat
import threading
from collections import Counter
from decimal import Decimal

import pytest
import torch
from trace_processor import TraceProcessor

import opstrobe
from opstrobe import record_function

HOSTILE = [
    'quote " backslash \\ slash / </script>',
    "tab\tnewline\nreturn\r\x01\x1b\x7f",
    "a\0b",
    "übergröße 模型 🔥",
    "\ud800",
    'q"\udcff\n',
    "ends in \\",
    "\\",
    "\\\\\\",
    "",
    "x" * 100_000,
]


def shown(text):
    """What a file shows of a text: lone surrogates, which no strict JSON reader takes, are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def train(profile, ranges=("step",), steps=2):
    """Some training under `profile`, forward and backward on two threads, a range across threads, and hostile names."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile as prof:
        for _ in range(steps):
            for name in ranges:
                with record_function(name):
                    optimizer.zero_grad()
                    model(torch.randn(2, 3, 8, 8)).sum().backward()
                    torch.cat([torch.ones(2), torch.zeros(3)])
            optimizer.step()
    return prof


@pytest.fixture(scope="module")
def recorded():
    return train(
        opstrobe.profile(
            activities=[opstrobe.ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True
        ),
        ["step", *HOSTILE],
    )


@pytest.fixture
def load(pytestconfig):
    """Reads a file into Perfetto's trace processor."""

    def load(path):
        processor = TraceProcessor(pytestconfig.cache.mkdir("trace-processor"))
        processor.load(path)
        return processor

    return load


def read(path):
    """The document, with numbers as written in the file. Strict: no NaN, nothing that UTF-8 cannot hold."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode("utf-8")
    document = json.loads(text, parse_float=Decimal, parse_constant=pytest.fail)
    json.dumps(document, ensure_ascii=False, default=str).encode("utf-8")
    return document


def ns(microseconds):
    return int(microseconds * 1000)


# --- other programs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["json", "json.gz"])
def test_perfetto(recorded, load, tmp_path, end):
    path = tmp_path / f"t.{end}"
    recorded.export_chrome_trace(path)
    rows = read(path)["traceEvents"]
    processor = load(path)
    assert processor.import_errors() == {}

    # Every slice is there, at its nanosecond, for its length.
    expected = Counter((ns(row["ts"]), ns(row.get("dur", 0))) for row in rows if row["ph"] in "Xi")
    found = Counter((row["ts"], row["dur"]) for row in processor.query("select ts, dur from slice"))
    assert found == expected
    # As deep as it is in the tree of the file: what encloses what.
    depth = max(row["depth"] for row in processor.query("select depth from slice"))
    assert depth >= 4
    flows = processor.query("select count(*) as n from flow")
    assert flows[0]["n"] == sum(row["ph"] == "s" for row in rows) > 0
    threads = {row["name"] for row in processor.query("select name from thread")}
    assert f"thread {threading.get_native_id()} (MainThread)" in threads
    processes = {row["pid"]: row["name"] for row in processor.query("select pid, name from process")}
    assert processes[os.getpid()]


def test_arrows_join_forward_and_backward(recorded, load, tmp_path):
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(path)
    pairs = load(path).query(
        "select a.name as source, b.name as target from flow join slice a on a.id = slice_out join slice b on b.id = slice_in"
    )
    found = {(pair["source"], pair["target"]) for pair in pairs}
    assert ("aten::relu", "ReluBackward0") in found
    assert ("aten::addmm", "AddmmBackward0") in found
    assert all("Backward" in target and "evaluate_function" not in target for _, target in found)


@pytest.mark.parametrize("end", ["json", "json.gz"])
def test_torch_validator(recorded, tmp_path, end):
    path = tmp_path / f"t.{end}"
    recorded.export_chrome_trace(path)
    validator = pytest.importorskip("torch.profiler._trace_validator", reason="this torch has no validator")
    assert validator.validate_trace(str(path)) == (True, [])


@pytest.mark.torch_like("2.13")
def test_same_shape_as_torch(tmp_path):
    """Categories, phases, the members of rows and of args, and the values that do not depend on time."""

    def shapes(document):
        found = {}
        for row in document["traceEvents"]:
            members = found.setdefault((row["ph"], row.get("cat")), {"row": set(), "args": set()})
            members["row"] |= row.keys()
            members["args"] |= row.get("args", {}).keys()
        return found

    def inputs(document):
        keys = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
        return Counter(
            (row["name"], json.dumps([row["args"].get(key) for key in keys]))
            for row in document["traceEvents"]
            if row.get("cat") == "cpu_op" and row["name"].startswith("aten::")
        )

    options = {"record_shapes": True, "profile_memory": True}
    documents = []
    for profiler in (opstrobe, torch.profiler):
        profile = profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options)
        train(profile)
        path = tmp_path / f"{profiler.__name__}.json"
        profile.export_chrome_trace(str(path))
        documents.append(read(path))
    ours, theirs = documents

    # Torch's own memory rows end in "finished": false without a reason.
    expected = shapes(theirs)
    expected["i", "cpu_instant_event"]["args"].discard("finished")
    ours_shapes = shapes(ours)
    # Beyond torch's, for opstrobe.read: what makes a node one of the backward pass, and the memory behind its inputs.
    ours_shapes["X", "cpu_op"]["args"] -= {"Scope", "Storages"}
    assert ours_shapes == expected
    assert inputs(ours) == inputs(theirs)
    assert theirs.keys() <= ours.keys()
    assert {key: ours[key] for key in ("schemaVersion", "displayTimeUnit", "host_name", "record_shapes")} == {
        key: theirs[key] for key in ("schemaVersion", "displayTimeUnit", "host_name", "record_shapes")
    }
    half_grid_ns = 7889238 * 1000000000 // 2
    assert abs(ours["baseTimeNanoseconds"] - theirs["baseTimeNanoseconds"]) in (0, half_grid_ns, 2 * half_grid_ns)


# --- rows ---------------------------------------------------------------------------------------------------------------


def test_hostile_names(recorded, tmp_path):
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(path)
    rows = [row for row in read(path)["traceEvents"] if row.get("cat") == "user_annotation"]
    names = {row["name"] for row in rows}
    assert {shown(name) for name in HOSTILE} <= names
    # What cannot be shown as it is can be had back.
    raw = {
        row["args"]["Raw name"].encode("latin-1").decode("utf-8", "surrogatepass")
        for row in rows
        if "Raw name" in row["args"]
    }
    assert raw == {name for name in HOSTILE if shown(name) != name}


def test_no_row_twice(recorded, tmp_path):
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(path)
    rows = read(path)["traceEvents"]
    meta = Counter((row["name"], row["pid"], row["tid"]) for row in rows if row["ph"] == "M")
    assert set(meta.values()) == {1}
    ids = [row["args"]["External id"] for row in rows if row["ph"] == "X" and row["cat"] != "Trace"]
    assert len(ids) == len(set(ids))
    indexes = [row["args"]["Ev Idx"] for row in rows if "Ev Idx" in row.get("args", {})]
    assert sorted(indexes) == list(range(len(indexes)))


def test_memory_rows(recorded, tmp_path):
    path = tmp_path / "t.json"
    recorded.export_chrome_trace(path)
    rows = [row["args"] for row in read(path)["traceEvents"] if row["name"] == "[memory]"]
    assert rows
    assert not any("finished" in row for row in rows)
    for before, after in zip(rows, rows[1:]):
        assert after["Total Allocated"] == before["Total Allocated"] + after["Bytes"]


def test_open_range_is_unfinished(tmp_path):
    still_open = record_function("open")
    with opstrobe.profile() as prof:
        still_open.__enter__()
    still_open.__exit__(None, None, None)
    prof.export_chrome_trace(tmp_path / "t.json")
    rows = {row["name"]: row for row in read(tmp_path / "t.json")["traceEvents"]}
    assert rows["open"]["args"]["finished"] is False


def cross_ranges(profile):
    """A range that another thread closes, and one that is open still when the range around it closes."""
    first, second = record_function("first"), record_function("second")
    with profile as prof:
        first.__enter__()
        with record_function("inside"):
            thread = threading.Thread(target=lambda: first.__exit__(None, None, None))
            second.__enter__()
            thread.start()
            thread.join()
        torch.ones(1)
        second.__exit__(None, None, None)
    return prof


def test_ranges_across_threads_load(load, tmp_path):
    prof = cross_ranges(opstrobe.profile())
    path = tmp_path / "t.json"
    prof.export_chrome_trace(path)
    phases = {row["name"]: row["ph"] for row in read(path)["traceEvents"] if row.get("cat") == "user_annotation"}
    assert phases == {"first": "e", "inside": "X", "second": "X"}
    # Viewers drop a complete event that cuts another of its track: the one that does gets a separate track.
    processor = load(path)
    assert processor.import_errors() == {}
    names = {row["name"] for row in processor.query("select name from slice")}
    assert {"first", "inside", "second", "aten::ones"} <= names


def test_frames_that_ranges_cut_load(load, tmp_path):
    def end():
        opened.__exit__(None, None, None)

    opened = record_function("range")
    with opstrobe.profile(with_stack=True) as prof:
        opened.__enter__()
        end()
    path = tmp_path / "t.json"
    prof.export_chrome_trace(path)
    processor = load(path)
    assert processor.import_errors() == {}
    names = {row["name"].rpartition(": ")[2] for row in processor.query("select name from slice")}
    assert {"range", "end"} <= {name.rpartition(".")[2] for name in names}


# --- the file -----------------------------------------------------------------------------------------------------------


def test_written_again_and_again(recorded, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for path in (first, second, first):
        recorded.export_chrome_trace(path)
    documents = [read(path) for path in (first, second)]
    assert [document.pop("traceName") for document in documents] == [str(first), str(second)]
    assert documents[0] == documents[1]
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.json"]


def test_gz_is_the_same(recorded, tmp_path):
    plain, packed = tmp_path / "t.json", tmp_path / "t.json.gz"
    recorded.export_chrome_trace(plain)
    recorded.export_chrome_trace(packed)
    documents = [read(path) for path in (plain, packed)]
    assert [document.pop("traceName") for document in documents] == [str(plain), str(packed)]
    assert documents[0] == documents[1]


@pytest.mark.parametrize("end", ["json", "json.gz"])
def test_a_failed_write_is_told_and_keeps_the_old_file(recorded, tmp_path, end):
    with pytest.raises(FileNotFoundError, match="no such file or directory"):
        recorded.export_chrome_trace(tmp_path / "none" / f"t.{end}")
    with pytest.raises(IsADirectoryError):
        recorded.export_chrome_trace(tmp_path)
    with pytest.raises(OSError, match="no space left on device") as raised:
        recorded.export_chrome_trace("/dev/full")
    assert raised.value.errno == 28
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    # And the next one works.
    path = tmp_path / f"t.{end}"
    path.write_text("old")
    recorded.export_chrome_trace(path)
    assert read(path)["schemaVersion"] == 1
    assert os.listdir(tmp_path) == [path.name]


def test_a_full_disk_keeps_the_old_file(recorded, tmp_path):
    import resource
    import signal

    path = tmp_path / "t.json"
    path.write_text("old")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="file too large"):
            recorded.export_chrome_trace(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.json"]


def test_other_threads_run_meanwhile(recorded, tmp_path):
    """Writing gives up the interpreter lock: writers in several threads at once, and each file is whole."""
    paths = [tmp_path / f"{i}.json" for i in range(4)]
    threads = [threading.Thread(target=recorded.export_chrome_trace, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    documents = [read(path) for path in paths]
    for document in documents:
        document.pop("traceName")
    assert all(document == documents[0] for document in documents)
