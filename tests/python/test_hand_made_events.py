# SPDX-License-Identifier: Apache-2.0
"""Events that a program makes itself, in lists and averages of ours and of torch."""

import json

import pytest
from torch.autograd import profiler_util as theirs

import opstrobe
from opstrobe import autograd_profiler as ours

# From 2.4 on torch has renamed the rest; these arguments are in all of them.
EVENTS = [("outer", 1, 0, 100), ("mm", 1, 10, 40), ("mm", 1, 12, 38), ("add", 1, 20, 30), ("other", 2, 5, 25)]


def listed(module, **options):
    events = module.EventList(**options)
    for number, (name, thread, start, end) in enumerate(EVENTS):
        events.append(module.FunctionEvent(number, name, thread, start, end, stack=[], input_shapes=[], flops=0))
    return events


def tree(events):
    return [(e.name, e.cpu_parent and e.cpu_parent.name, [child.id for child in e.cpu_children]) for e in events]


def test_children_by_intervals_on_a_thread():
    events = ours.EventList()
    spans = [(1, 0, 1), (1, 1, 2), (0, 0, 2), (0, 1, 2), (0, 1, 3)]
    for number, (thread, start, end) in enumerate(spans, 1):
        events.append(ours.FunctionEvent(id=number, node_id=0, name="", thread=thread, start_us=start, end_us=end))
    events._populate_cpu_children()
    # [1, 3] pushes [0, 2] out; [1, 2] is inside it.
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [], [], [4]]


def test_tree_equals_torch():
    mine, other = listed(ours), listed(theirs)
    mine._build_tree()
    other._build_tree()
    assert tree(mine) == tree(other)
    assert [event.name for event in mine] == ["outer", "mm", "add", "other"]  # one mm was folded into the other


@pytest.mark.parametrize("sort_by", [None, "cpu_time_total", "count"])
def test_tables_equal_torch(sort_by):
    mine, other = listed(ours, with_flops=True), listed(theirs, with_flops=True)
    for events in (mine, other):
        events._build_tree()
    assert mine.table(sort_by=sort_by) == other.table(sort_by=sort_by)
    assert mine.key_averages().table(sort_by=sort_by) == other.key_averages().table(sort_by=sort_by)
    assert str(mine) == str(other)
    assert mine.self_cpu_time_total == other.self_cpu_time_total == 120
    assert mine.total_average().cpu_time_total == other.total_average().cpu_time_total


def test_totals_are_rounded_like_torch():
    mine, other = ours.EventList(), theirs.EventList()
    for number in range(10):  # 0.15 us ten times are 1.4999999999999998 us to who adds floats, and 1.5 to who counts
        span = {"id": number, "name": "x", "thread": number, "start_us": 0, "end_us": 0.15}
        mine.append(ours.FunctionEvent(**span))
        other.append(theirs.FunctionEvent(**span, stack=[], input_shapes=[], flops=0))
    for events in (mine, other):
        events._build_tree()
    assert "Self CPU time total: 0.001ms\n" in other.table(time_unit="ms")
    assert mine.table(time_unit="ms") == other.table(time_unit="ms")


def test_average_of_events():
    average = opstrobe.FunctionEventAvg()
    average.add(ours.FunctionEvent(id=0, node_id=0, name="foo", thread=0, start_us=10, end_us=15, cpu_memory_usage=8))
    average += ours.FunctionEvent(id=1, node_id=0, name="foo", thread=0, start_us=20, end_us=30, cpu_memory_usage=-2)
    average.add(average)
    assert (average.key, average.count, average.cpu_time_total, average.cpu_time) == ("foo", 4, 30, 7.5)
    assert (average.self_cpu_time_total, average.device_time_total, average.cpu_memory_usage) == (30, 0, 12)
    with pytest.raises(AssertionError, match="Expected keys to match, but got bar vs foo"):
        average.add(ours.FunctionEvent(id=2, node_id=0, name="bar", thread=0, start_us=1, end_us=2))
    assert average.count == 4


def test_recorded_events_and_such_made_by_hand_in_one_list():
    with opstrobe.profile() as prof:
        with opstrobe.record_function("recorded"):
            pass
    events = prof.events().copy()
    events.append(ours.FunctionEvent(7, "made", 1, 0, 10, stack=[]))
    assert [event.name for event in events] == ["recorded", "made"]
    for ask in (events.key_averages, events.table, events.total_average):
        with pytest.raises(TypeError, match="holds recorded events and such made by hand"):
            ask()
    del events[1]
    assert [row.key for row in events.key_averages()] == ["recorded"]


def test_steps_of_the_tree_leave_recorded_events_alone():
    with opstrobe.profile() as prof:
        with opstrobe.record_function("outer"), opstrobe.record_function("inner"):
            pass
    before = tree(prof.events())
    for step in ("_populate_cpu_children", "_remove_dup_nodes", "_set_backward_stacktraces", "_build_tree"):
        assert getattr(prof.events(), step)() is None
    assert tree(prof.events()) == before


def test_other_files_and_errors(tmp_path):
    events = ours.EventList([ours.FunctionEvent(1, "mm", 1, 0, 10, stack=[], trace_name="mm")])
    events.export_chrome_trace(str(tmp_path / "trace.json"))
    assert [row["name"] for row in json.loads((tmp_path / "trace.json").read_text())] == ["mm"]
    with pytest.raises(TypeError):
        ours.FunctionEvent(1, "too few")
    with pytest.raises(TypeError, match="an EventList holds"):
        events.append("no event")
    assert len(events) == 1
