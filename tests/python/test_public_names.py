# SPDX-License-Identifier: Apache-2.0
"""Names of every age: what torch's documentation has called things since its first profiler works."""

import warnings

import pytest

import opstrobe
from opstrobe import record_function

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def prof():
    x = torch.ones(4, 4, requires_grad=True)
    with opstrobe.profile(record_shapes=True, profile_memory=True) as prof:
        with record_function("range"):
            (x @ x).sum().backward()
    return prof


@pytest.fixture(params=["event", "average"])
def row(prof, request):
    return prof.events()[1] if request.param == "event" else prof.key_averages()[1]


@pytest.mark.parametrize(("name", "today"), [("self_cpu_time", "self_cpu_time_total"), ("children", "cpu_children")])
def test_other_names(row, name, today):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(row, name) == getattr(row, today)
    assert getattr(row, today)


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("cuda_time", "device_time"),
        ("cuda_time_total", "device_time_total"),
        ("self_cuda_time_total", "self_device_time_total"),
        ("self_cuda_time", "self_device_time_total"),
        ("cuda_memory_usage", "device_memory_usage"),
        ("self_cuda_memory_usage", "self_device_memory_usage"),
    ],
)
def test_names_with_a_remark(row, name, today):
    with pytest.warns(FutureWarning, match=f"`{name}` is deprecated.*`{today}`") as caught:
        assert getattr(row, name) == getattr(row, today)
    assert caught[0].filename == __file__


def test_notes_equal_torch(prof):
    with torch.profiler.profile() as theirs:
        torch.ones(1)
    names = ["cuda_time", "cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage", "metadata_json"]
    for name in names if hasattr(type(theirs.events()[0]), "metadata_json") else names[:-1]:
        messages = []
        for event in (theirs.events()[0], prof.events()[0]):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                getattr(event, name)
            messages.append([(str(w.message), w.category) for w in caught])
        assert messages[0] == messages[1]


def test_events_alone(prof):
    outer, inner = prof.events()[0], prof.events()[1]
    assert (inner.start, inner.end) == (inner.time_range.start, inner.time_range.end)
    assert inner.parent is inner.cpu_parent or inner.parent.id == inner.cpu_parent.id
    assert inner.parent.name == outer.name == "range"
    assert outer.parent is None
    for name in ("start", "end"):
        with pytest.raises(AttributeError):
            getattr(prof.key_averages()[0], name)


def test_d33_metadata_of_cpu_events(prof):
    ids = set()
    for event in prof.events():
        if event.name == "[memory]":
            assert event.metadata is None
            continue
        assert event.metadata["External id"] == event.external_id
        ids.add(event.metadata["Ev Idx"])
        assert ("Sequence number" in event.metadata) == (event.sequence_nr >= 0)
    assert len(ids) == sum(event.name != "[memory]" for event in prof.events())
    with pytest.warns(FutureWarning, match="metadata_json"):
        assert prof.events()[0].metadata_json == '"External id": 1, "Ev Idx": 0'


def test_first_tutorials(tmp_path):
    """The calls of torch's first profiler, on its autograd one."""
    with opstrobe.autograd_profiler.profile(use_cpu=True, record_shapes=True) as prof:
        torch.ones(2) + 1
    assert prof.events() is prof.function_events  # D30
    assert prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1)
    assert prof.key_averages(group_by_input_shape=True).table(sort_by="cuda_time_total", row_limit=10)
    assert "aten::add" in [e.key for e in prof.events()]
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    print(prof)


def test_stacks_right_after_the_profile(tmp_path):
    """Torch's documentation has exported stacks without saying that with_stack is needed: with it, it works."""
    with opstrobe.profile(activities=[opstrobe.ProfilerActivity.CPU], with_stack=True) as prof:
        torch.ones(100, 100) @ torch.ones(100, 100)
    prof.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    assert "aten::mm" in (tmp_path / "stacks.txt").read_text()
    with opstrobe.profile() as without:
        torch.ones(1)
    with pytest.raises(AssertionError, match="with_stack"):
        without.export_stacks(str(tmp_path / "none.txt"))


def test_names_that_programs_take_from_inside():
    from opstrobe import autograd_profiler, profiler

    assert profiler.PROFILER_STEP_NAME == torch.profiler.profiler.PROFILER_STEP_NAME
    assert autograd_profiler._is_profiler_enabled is False
    with opstrobe.profile():
        assert autograd_profiler._is_profiler_enabled is True
        assert torch.autograd.profiler._is_profiler_enabled is True
    assert autograd_profiler._is_profiler_enabled is False
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        autograd_profiler.nothing


def test_an_observer_of_the_users_own():
    from opstrobe.profiler import _ITraceObserver

    class Own(_ITraceObserver):
        def __init__(self):
            self.calls = []

        def start(self):
            self.calls.append("start")

        def stop(self):
            self.calls.append("stop")

        def cleanup(self):
            self.calls.append("cleanup")

    own = Own()
    with opstrobe.profile(execution_trace_observer=own):
        pass
    assert own.calls == ["start", "stop", "cleanup"]
    assert isinstance(opstrobe.ExecutionTraceObserver(), _ITraceObserver)
    with pytest.raises(TypeError):
        _ITraceObserver()
