# SPDX-License-Identifier: Apache-2.0
"""What each format that Opstrobe writes and reads keeps of a trace: the table in docs/manual/traces.md, cell by cell; and what programs
that own a format read from such a file."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from collections import Counter

import pytest
from round_trip_fields import FIELDS, TIMES, trace
from trace_processor import TraceProcessor

import opstrobe

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("fsspec")

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "manual" / "traces.md"
HEADING = "## What a file keeps"


def table():
    """The cells of the table by format and field."""
    section = PAGE.read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]  # fmt: skip
    names, _, *fields = rows
    return {name: {row[0]: row[i] for row in fields} for i, name in enumerate(names) if i}


def convert(source, target):
    done = subprocess.run(["opstrobe", "convert", source, target], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return target


class Read:
    """A file, with what FIELDS need of it."""

    def __init__(self, path, folder):
        read = opstrobe.read(path)
        self.to_arrow, self.metadata, self.rank = read.to_arrow, read.metadata, read.trace.rank("")
        folder.mkdir()
        self.folded = sorted(convert(path, folder / "stacks.folded").read_text().splitlines())
        self.json = json.loads(convert(path, folder / "rows.json").read_text())["traceEvents"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "t.json"
    path.write_text(json.dumps(trace()))
    return path


def through(name, path, folder):
    """The file of a trace after it was written in a format."""
    if name != "archive":
        return convert(path, folder / f"t{name}")
    import opstrobe.archive
    from opstrobe.archiving import rebuild
    from opstrobe.archiving.database import ArchiveDatabase
    from opstrobe.archiving.location import Location

    copy = folder / "t.json"
    copy.write_bytes(path.read_bytes())
    (added,) = opstrobe.archive.add(folder / "archive", copy)
    os.unlink(copy)  # else it would be read instead of the archive
    return pathlib.Path(rebuild.trace_file(ArchiveDatabase(Location(folder / "archive")), added, str(folder)))


FORMATS = [".json", ".pftrace", ".et", "archive", ".speedscope.json", ".pb.gz", ".folded"]


def test_the_table_has_all_formats_and_fields():
    cells = table()
    assert list(cells) == FORMATS
    assert all(list(fields) == list(FIELDS) for fields in cells.values())


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_format_keeps(name, original, tmp_path):
    before, after = Read(original, tmp_path / "before"), Read(through(name, original, tmp_path), tmp_path / "after")
    found = {}
    for field, value in FIELDS.items():
        assert value(before), field
        found[field] = "yes" if value(after) == value(before) else "–"
    for field, value in TIMES.items():
        if found[field] != "yes" and value(after, 1000) == value(before, 1000):
            found[field] = "µs"
    assert found == table()[name]


# --- programs that own a format ---------------------------------------------------------------------------------------

KINDS = {"operators": "cpu_op", "annotations": "user_annotation", "calls of the runtime": "cuda_runtime", "Python functions": "python_function"}  # fmt: skip


@pytest.mark.parametrize("name", [".json", ".pftrace"])
def test_perfetto_reads_what_was_written(name, original, tmp_path, pytestconfig):
    path = through(name, original, tmp_path)
    processor = TraceProcessor(pytestconfig.cache.mkdir("trace-processor"))
    processor.load(path)
    assert processor.import_errors() == {}
    events = opstrobe.read(original).to_arrow("events").to_pylist()
    shift = json.loads(path.read_text())["baseTimeNanoseconds"] if name == ".json" else 0
    for kind in (*KINDS.values(), "kernel", "gpu_memcpy"):
        slices = processor.query(f"select name, ts, dur from slice where category = '{kind}'")
        expected = [(row["name"], row["start_ns"], row["dur_ns"]) for row in events if row["category"] == kind]
        assert sorted((row["name"], row["ts"] + shift, row["dur"]) for row in slices) == sorted(expected), kind
    arrows = processor.query(
        "select a.name as a, b.name as b from flow join slice a on slice_out = a.id join slice b on slice_in = b.id"
    )
    assert {(row["a"], row["b"]) for row in arrows} >= {("aten::linear", "MmBackward0")}
    values = {row["value"] for row in processor.query("select value from counter")}
    assert {101.5, 102.5, 103.5} <= values
    names = {row["name"] for row in processor.query("select name from thread where name is not null")}
    assert any("main" in each for each in names) and any("autograd" in each for each in names)


def test_pyarrow_reads_an_archive(original, tmp_path):
    import pyarrow.parquet

    through("archive", original, tmp_path)
    read = opstrobe.read(original)
    for name in ("events", "kernels", "steps", "memory", "counters", "flows", "collectives", "modules", "tracks"):
        (path,) = (tmp_path / "archive").glob(f"job=*/date=*/*/{name}.parquet")
        expected = read.to_arrow(name)
        columns = expected.schema.names
        found = pyarrow.parquet.ParquetFile(path).read().select(columns).to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, expected.to_pylist())), name


_PPROF = """
const { Profile } = require(process.argv[1]);
const profile = Profile.decode(require("zlib").gunzipSync(require("fs").readFileSync(process.argv[2])));
const text = (index) => profile.stringTable.strings[Number(index)];
const byId = (items) => new Map(items.map((item) => [Number(item.id), item]));
const [functions, locations] = [byId(profile.function), byId(profile.location)];
const frame = (id) => {
  const [line] = locations.get(Number(id)).line;
  const about = functions.get(Number(line.functionId));
  return [text(about.name), text(about.filename), Number(about.startLine)];
};
console.log(JSON.stringify({
  types: profile.sampleType.map((type) => [text(type.type), text(type.unit)]),
  samples: profile.sample.map((sample) => [[...sample.locationId].reverse().map(frame), sample.value.map(Number)]),
}));
"""


def test_pprof_format_reads_what_was_written(original, tmp_path):
    """A decoder from npm, which Node's profilers use."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("pprof-format needs node and npm")
    subprocess.run(["npm", "pack", "--silent", "pprof-format@2.3.2"], cwd=tmp_path, check=True, capture_output=True)
    shutil.unpack_archive(next(tmp_path.glob("*.tgz")), tmp_path)
    path = through(".pb.gz", original, tmp_path)
    command = ["node", "-e", _PPROF, str(tmp_path / "package"), str(path)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["types"] == [["time", "nanoseconds"]]
    stacks = Counter()
    for frames, (value,) in found["samples"]:
        stack = ";".join(f"{file}({line}): {name}" if file else name for name, file, line in frames)
        stacks[stack.replace(" ", "_")] += value  # folded stacks separate the value by a space
    folded = convert(original, tmp_path / "stacks.folded").read_text().splitlines()
    assert stacks == {stack: int(value) for stack, _, value in (line.rpartition(" ") for line in folded)}
