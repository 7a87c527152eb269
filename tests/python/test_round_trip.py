# SPDX-License-Identifier: Apache-2.0
"""A recording and its file read back are the same: every event, every record, and all that is worked out from them."""

from __future__ import annotations

import contextlib
import gc
import re
import threading
import warnings

import pytest
import torch
from torch import nn

import opstrobe
from opstrobe.profiler import _ExperimentalConfig


@torch.jit.script
def scripted(x):
    return torch.relu(x) + 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        with opstrobe.record_function("half \u00bd", 'of "it"'):
            return scripted(self.layers(x))


def train(model, optimizer):
    optimizer.zero_grad()
    x = torch.randn(8, 16)
    model(x).sum().backward()
    optimizer.step()
    torch.cat([x, x], out=torch.empty(0))


def load():
    with opstrobe.record_function("loading"):
        torch.ones(3).add_(1)


@contextlib.contextmanager
def step(number):
    """Frames of a generator cut through the range that it opens and closes."""
    with opstrobe.record_function(f"ProfilerStep#{number}"):
        yield


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A profile with all options, its file read, and the file."""
    path = tmp_path_factory.mktemp("both") / "trace.json"
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(3):
        train(model, optimizer)
    config = _ExperimentalConfig(
        performance_events=["pagefaults"],
        capture_overload_names=True,
        record_python_gc_info=True,
        profile_all_threads=True,
        verbose=True,
    )
    with opstrobe.profile(
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
        experimental_config=config,
    ) as prof:
        for number in range(3):
            with step(number):
                train(model, optimizer)
        Model()(torch.ones(2, 16))
        gc.collect()
        with opstrobe._RecordFunctionFast("fast", [torch.ones(2), 3], {"stream": 7, "algorithm": "ring"}):
            pass
        thread = threading.Thread(target=load, name="loader")
        thread.start()
        thread.join()
        torch.jit.wait(torch.jit.fork(scripted, torch.ones(2)))
    prof.add_metadata("note", "tab\there")
    prof.export_chrome_trace(str(path))
    return prof, opstrobe.read(path), path


def plain(value):
    """What an attribute says, without whose it is."""
    if isinstance(value, opstrobe._core.FunctionEvent):
        return value.id, value.name
    if isinstance(value, (list, tuple, opstrobe._core.EventList)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, opstrobe._core.Interval) else value


def attributes(event):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's old names
        values = {name: getattr(event, name, None) for name in dir(event) if not name.startswith("__")}
    return {name: plain(value) for name, value in values.items() if not callable(value)}


def test_the_recording_has_everything(both):
    """What the other tests compare is there."""
    text = both[2].read_text()
    for part in (
        "Storages",
        "Call stack",
        "Module Hierarchy",
        "pagefaults",
        "Args",
        "Overload Name",
        "Function",
        "CallFrom",
        "Sequence number",
        "Input Strides",
        "Scope",
        "Python module id",
        "stream",
        "Record function id",
    ):
        assert f'"{part}":' in text, part
    for part in (
        '"ph":"b"',
        '"Python GC"',
        '"nn.Module: Model_0"',
        '"[memory]"',
        '"name":"half \u00bd"',
        '"roles":[[',
        '"fwdbwd"',
    ):
        assert part in text, part


def test_events_come_back(both):
    prof, file, _ = both
    before, after = prof.events(), file.events()
    assert len(before) == len(after) > 500
    for ours, read in zip(before, after, strict=True):
        assert attributes(read) == attributes(ours)


def test_rows_and_metadata_come_back(both):
    prof, file, _ = both
    trace = prof.profiler.trace
    assert file.trace.rows() == trace.rows()
    for name in ("start_ns", "stop_ns", "pid", "lost", "has_memory", "event_count"):
        assert getattr(file.trace, name) == getattr(trace, name)
    assert file.metadata.items() >= trace.metadata().items()
    assert file.notes == []


def test_the_file_written_again_is_the_same(both, tmp_path):
    _, file, path = both
    file.export_chrome_trace(str(tmp_path / "again.json"))
    name = re.compile(r'"traceName":.*')
    assert name.sub("", (tmp_path / "again.json").read_text()) == name.sub("", path.read_text())


@pytest.mark.parametrize("shapes", [False, True])
@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("overloads", [False, True])
def test_averages_come_back(both, shapes, depth, overloads):
    before, after = (item.key_averages(shapes, depth, overloads) for item in both[:2])
    assert [attributes(row) for row in after] == [attributes(row) for row in before]
    assert after.table(row_limit=1000) == before.table(row_limit=1000)


def test_tables_come_back(both):
    prof, file, _ = both
    assert file.events().table(row_limit=2000) == prof.events().table(row_limit=2000)
    assert attributes(file.events().total_average()) == attributes(prof.events().total_average())


@pytest.mark.parametrize("name", ["stacks.txt", "stacks.speedscope.json", "stacks.svg"])
def test_stacks_come_back(both, name, tmp_path):
    written = []
    for folder, item in zip(("a", "b"), both, strict=False):
        (tmp_path / folder).mkdir()
        item.export_stacks(str(tmp_path / folder / name))
        written.append((tmp_path / folder / name).read_text())
    assert written[0] == written[1] != ""


@pytest.mark.parametrize("name", ["memory.json", "memory.raw.json", "memory.html"])
def test_the_memory_timeline_comes_back(both, name, tmp_path):
    written = []
    for folder, item in zip(("a", "b"), both, strict=False):
        (tmp_path / folder).mkdir()
        item.export_memory_timeline(str(tmp_path / folder / name))
        written.append((tmp_path / folder / name).read_text())
    assert written[0] == written[1] != ""


def test_the_peak_of_memory_comes_back(both):
    before, after = (item.memory_peak() for item in both[:2])
    assert after.as_dict() == before.as_dict()
    assert str(after) == str(before)
    assert {"PARAMETER", "OPTIMIZER_STATE", "GRADIENT"} <= before.as_dict()["categories"].keys()


def test_modules_come_back(both):
    before, after = (item.module_summary() for item in both[:2])
    assert (after.rows(), after.rows(by_class=True), after.tree()) == (
        before.rows(),
        before.rows(by_class=True),
        before.tree(),
    )
    assert after.table() == before.table()


def test_views_come_back(both):
    """All but what the views say of the file itself: how many rows it has, and where its times count from."""
    before, after = (item.views() for item in both[:2])
    for views in (before, after):
        del views["trace_events"], views["profiler_start_ts"]
    assert after == before


def test_storages_take_little_room(tmp_path):
    """Only where shapes and memory are recorded, and then less than a tenth of the file."""
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    sizes = {}
    for memory in (False, True):
        with opstrobe.profile(record_shapes=True, profile_memory=memory) as prof:
            for _ in range(5):
                train(model, optimizer)
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        text = (tmp_path / "trace.json").read_text()
        own = re.findall(r'"Storages":\[.*?\],', text) + re.findall(r'\n"(?:storages|roles)":.*', text)
        sizes[memory] = (len(text), sum(map(len, own)))
    assert sizes[False][1] == 0
    assert 0 < sizes[True][1] < sizes[True][0] / 10


def test_a_profile_its_window_and_its_file_give_the_same_results(both):
    before, after = both[:2]
    views = [item.views() for item in (before, before.profiler, after)]
    assert views[0] == views[1] and views[0]["operators"] == views[2]["operators"] != []
    advice = [[finding["id"] for finding in item.advise()["findings"]] for item in (before, before.profiler, after)]
    assert advice[0] == advice[1] == advice[2]
    rows = [len(item.key_averages(include_python_functions=False)) for item in (before, before.profiler, after)]
    assert 0 < rows[0] == rows[1] == rows[2] < len(before.key_averages())
    assert before.profiler.memory_peak().as_dict() == before.memory_peak().as_dict()
