# SPDX-License-Identifier: Apache-2.0
"""The raw view of a recording, compared with torch's."""

import pytest

import opstrobe

torch = pytest.importorskip("torch")
from torch._C._profiler import _EventType  # noqa: E402


def run(module):
    with module.profile(activities=[module.ProfilerActivity.CPU], record_shapes=True) as prof:
        with torch.profiler.record_function("range"):
            torch.ones(2, 3) + 1
        torch.zeros(2)
    return prof


@pytest.fixture(scope="module")
def both():
    run(torch.profiler)  # torch imports a module at its first range
    return run(opstrobe), run(torch.profiler)


HIDDEN = ("profiler::", "[memory]")


def rows_of(results):
    return [
        (e.name(), e.scope(), e.sequence_nr(), e.shapes(), e.dtypes(), e.is_user_annotation(), e.activity_type())
        for e in results.events()
        if not e.name().startswith(HIDDEN)
    ]


def test_events(both):
    ours, theirs = (prof.profiler.kineto_results for prof in both)
    if torch.__version__.startswith("2.13"):
        assert rows_of(ours) == rows_of(theirs)
    assert len(rows_of(ours)) > 5
    results = ours
    for event in results.events():
        assert event.duration_ns() == event.end_ns() - event.start_ns() >= 0
        assert event.start_ns() >= results.trace_start_ns() == both[0].profiler.trace.start_ns
        with pytest.raises(AttributeError):
            event.unknown  # noqa: B018
    assert len(results.events()[1:3]) == 2


def tree(nodes):
    return [(n.name, tree(n.children)) for n in nodes if not n.name.startswith(HIDDEN)]


def test_tree(both):
    ours, theirs = (prof.profiler.kineto_results.experimental_event_tree() for prof in both)
    assert tree(ours) == tree(theirs)
    (ones, *_) = ours[0].children
    assert ones.parent.name == ours[0].name == "range"
    assert ours[0].parent is None
    assert ones.tag == _EventType.TorchOp == 0 or ones.tag == _EventType.TorchOp
    kind, fields = ones.typed
    assert (kind, fields.name, fields.sequence_number) == (ones.tag, "aten::ones", -1)
    assert fields.scope == torch._C._profiler.RecordScope.FUNCTION
    assert opstrobe.RecordScope.FUNCTION == fields.scope
    assert ones.start_time_ns + ones.duration_time_ns == ones.end_time_ns
    assert ours[0].start_time_ns <= ones.start_time_ns
    assert ones.start_tid == theirs[0].start_tid


def test_python_calls():
    def called():
        return len([])

    with opstrobe.profile(with_stack=True) as prof:
        called()

    def walk(nodes):
        for node in nodes:
            yield node
            yield from walk(node.children)

    nodes = {node.name: node for node in walk(prof.profiler.kineto_results.experimental_event_tree())}
    (name,) = (name for name in nodes if name.endswith("called"))
    assert nodes[name].tag == _EventType.PyCall
    site = nodes[name].extra_fields.callsite
    assert site.file_name.endswith("test_kineto_results.py")
    assert site.line_number == called.__code__.co_firstlineno
    builtin = nodes["<built-in function len>"]
    assert builtin.tag == _EventType.PyCCall
    assert builtin.extra_fields.caller.function_name == site.function_name


def test_save_and_names_before_it(tmp_path):
    prof = opstrobe.autograd_profiler.profile()
    assert prof.kineto_results is None
    with prof:
        torch.ones(1)
    for _ in range(2):
        prof.kineto_results.save(tmp_path / "t.json")
    assert "aten::ones" in (tmp_path / "t.json").read_text()
