# SPDX-License-Identifier: Apache-2.0
"""opstrobe.autograd_profiler compared with torch.autograd.profiler, in one process."""

import inspect
import sqlite3
import warnings

import pytest

import opstrobe
from opstrobe import autograd_profiler as ours

theirs = pytest.importorskip("torch.autograd.profiler")
import torch  # noqa: E402


def test_names():
    assert set(theirs.__all__) - set(ours.__all__) == set()
    for name in ours.__all__:
        assert getattr(ours, name) is not None


@pytest.mark.torch_like("2.13")
@pytest.mark.parametrize("name", ["profile", "emit_itt", "emit_nvtx", "load_nvprof", "EnforceUnique", "MemRecordsAcc"])
def test_signatures(name):
    mine, torchs = (list(inspect.signature(getattr(m, name)).parameters.values()) for m in (ours, theirs))
    public = [p for p in mine if not p.name.startswith("_") and p.name != "options"]
    assert [(p.name, p.kind, p.default) for p in public] == [(p.name, p.kind, p.default) for p in torchs]


@pytest.mark.torch_like("2.13")
def test_methods():
    with theirs.profile() as a, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.ones(1)
    with ours.profile() as b:
        torch.ones(1)
    missing = {name for name in dir(a) if not name.startswith("_")} - set(dir(b))
    # Torch's own bookkeeping: how it asks its C++ for a recording.
    assert missing == {"config", "kineto_activities", "profiler_kind"}
    for name in ("table", "key_averages", "export_chrome_trace", "export_stacks", "total_average"):
        mine, torchs = (list(inspect.signature(getattr(p, name)).parameters) for p in (b, a))
        assert mine[: len(torchs)] == torchs, name


@pytest.mark.parametrize("module", [ours, theirs], ids=["ours", "theirs"])
def test_disabled_is_nothing(module):
    prof = module.profile(enabled=False)
    assert prof.__enter__() is None
    assert not prof.__exit__(None, None, None)
    assert not theirs._is_profiler_enabled


@pytest.mark.parametrize("module", [ours, theirs], ids=["ours", "theirs"])
def test_not_reentrant(module):
    with module.profile() as prof:
        torch.ones(1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^Profiler context manager is not reentrant$"):
            prof.__enter__()
    assert [e.name for e in prof.function_events] == ["aten::ones", "aten::empty", "aten::fill_"]


@pytest.mark.parametrize("module", [ours, theirs], ids=["ours", "theirs"])
def test_text_of_profiles(module):
    prof = module.profile()
    assert repr(prof) == str(prof) == "<unfinished torch.autograd.profile>"
    with prof:
        torch.ones(1)
    assert (repr(prof), str(prof)) == (repr(prof.function_events), str(prof.function_events))
    assert prof.table(row_limit=1) == prof.function_events.table(row_limit=1)
    assert prof.key_averages(group_by_input_shape=True)[0].key == "aten::ones"
    assert prof.total_average().count == 3
    assert prof.self_cpu_time_total == pytest.approx(prof.function_events.self_cpu_time_total)
    with pytest.raises(AssertionError, match="with_stack"):
        prof.export_stacks("/nowhere")


@pytest.mark.torch_like("2.13")
@pytest.mark.parametrize(
    "arguments",
    [
        dict(use_device="foo"),
        dict(use_device="cuda"),
        dict(use_device="xpu"),
        dict(use_device="mtia"),
        dict(use_cpu=False),
        dict(unknown=1),
        dict(post_processing_timeout_s=0.0),
    ],
)
def test_arguments_that_torch_refuses_or_ignores(arguments):
    results = []
    for module in (ours, theirs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                prof = module.profile(**arguments)
                result = prof.use_device
            except Exception as error:
                result = type(error)
        results.append((result, [w.category for w in caught]))
    assert results[0] == results[1]


def test_use_cuda_is_deprecated():
    with pytest.warns(FutureWarning, match="use_cuda"), pytest.warns(UserWarning, match="CUDA is not available"):
        prof = ours.profile(use_cuda=True)
    assert (prof.use_device, prof.use_cuda) == (None, True)


def test_metadata_of_the_export(tmp_path):
    with ours.profile() as prof:
        torch.ones(1)
    prof.export_chrome_trace(tmp_path / "t.json", metadata={"mine": '["a"]'})
    assert prof.trace.metadata()["mine"] == '["a"]'
    with pytest.raises(ValueError):
        prof.export_chrome_trace(tmp_path / "t.json", metadata={"mine": "["})


def test_enforce_unique():
    for module in (ours, theirs):
        unique = module.EnforceUnique()
        unique.see(1, 2)
        unique.see(2, 1)
        with pytest.raises(RuntimeError, match=r"^duplicate key: \(1, 2\)$"):
            unique.see(1, 2)


@pytest.mark.torch_like("2.13")
def test_mem_records_acc():
    class At:
        def __init__(self, ns):
            self.ns = ns

        def start_ns(self):
            return self.ns

    records = [[At(ns), False] for ns in (5000, 1000, 3000, 3000)]
    found = [[record[0].ns for record in m.MemRecordsAcc(records).in_interval(1000, 3000)] for m in (ours, theirs)]
    assert found[0] == found[1] == [1000, 3000, 3000]
    assert list(ours.MemRecordsAcc([]).in_interval(0, 9)) == []


def test_step_tracker(monkeypatch):
    results = []
    for module in (ours, theirs):
        tracker = module.KinetoStepTracker
        monkeypatch.setattr(tracker, "_current_step", 0)
        monkeypatch.setattr(
            tracker, "_step_dict", type(tracker._step_dict)(*[int] if tracker._step_dict.__class__ is not dict else [])
        )
        steps = [
            tracker.current_step(),
            tracker.increment_step("a"),
            tracker.increment_step("a"),
            tracker.increment_step("b"),
            tracker.erase_step_count("b"),
            tracker.erase_step_count("unknown"),
            tracker.init_step_count("c"),
            tracker.increment_step("c"),
            tracker.increment_step("a"),
            tracker.current_step(),
        ]
        tracker._step_dict["c"] += 5
        with pytest.warns(UserWarning, match="increased more than 1"):
            steps.append(tracker.increment_step("c"))
        results.append(steps)
    assert results[0] == results[1]


def test_steps_are_counted_for_the_daemon(monkeypatch):
    monkeypatch.setattr(ours.KinetoStepTracker, "_current_step", 0)
    monkeypatch.setattr(ours.KinetoStepTracker, "_step_dict", {})
    with opstrobe.profile() as prof:
        prof.step()
        assert ours.KinetoStepTracker.current_step() == 0
        monkeypatch.setenv("KINETO_USE_DAEMON", "1")
        prof.step()
        assert ours.KinetoStepTracker._step_dict == {"ProfilerStep": 1}
    assert ours.KinetoStepTracker._step_dict == {}
    assert ours.KinetoStepTracker.current_step() == 1


def make_nvprof(path):
    """A file as nvprof writes it: two ranges, the inner of which started a kernel."""
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE StringTable (_id_ INTEGER, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (_id_ INTEGER, id INTEGER, timestamp INTEGER, name INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER, cbid INTEGER, start INTEGER, end INTEGER, correlationId INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER, start INTEGER, end INTEGER, correlationId INTEGER, name INTEGER);
        INSERT INTO StringTable VALUES (1, 'outer'), (2, 'aten::mm'), (3, 'gemm');
        INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 10, 1000, 1), (2, 11, 2000, 2), (3, 11, 8000, 0), (4, 10, 9000, 0);
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 3000, 4000, 77);
        INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 5000, 7500, 77, 3);
        """
    )
    database.commit()
    database.close()


def test_nvprof(tmp_path):
    make_nvprof(tmp_path / "n.sql")
    events = ours.load_nvprof(tmp_path / "n.sql")
    found = {e.name: (e.time_range.end - e.time_range.start) for e in events}
    assert found == {"outer": 8.0, "aten::mm": 6.0, "cudaLaunchKernel": 1.0, "gemm": 2.5}
    mm = next(e for e in events if e.name == "aten::mm")
    assert mm.cpu_parent.name == "outer"
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(sqlite3.OperationalError):
            ours.load_nvprof(path)
