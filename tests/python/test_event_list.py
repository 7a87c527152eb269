# SPDX-License-Identifier: Apache-2.0
"""EventList, FunctionEvent and FunctionEventAvg as Python objects, on user ranges: no torch is needed."""

import collections.abc
import copy
import gc
import json
import re
import threading

import pytest

import opstrobe
from opstrobe import EventList, FunctionEvent, FunctionEventAvg, Interval, Kernel, record_function


def record(work, **options):
    with opstrobe.profile(**options) as profile:
        work()
    return profile


def three_steps():
    for _ in range(3):
        with record_function("step"):
            with record_function("load"):
                pass
            with record_function("compute"), record_function("inner"):
                pass


@pytest.fixture
def profile():
    return record(three_steps)


@pytest.fixture
def events(profile):
    return profile.events()


NAMES = ["step", "load", "compute", "inner"] * 3


# --- as a list ----------------------------------------------------------------------------------------------------------


def test_sequence(events):
    assert len(events) == 12
    assert [event.name for event in events] == NAMES
    assert [event.name for event in reversed(events)] == NAMES[::-1]
    assert events[0].name == "step" and events[-1].name == "inner" and events[True].name == "load"
    assert events and not EventList()
    for i, event in enumerate(events):
        assert event in events and events.index(event) == i and events.count(event) == 1
        assert events[i] == event and events[i - 12] == event
    assert 3 not in events and None not in events
    assert sorted(events, key=lambda event: event.name)[0].name == "compute"
    assert isinstance(events, collections.abc.MutableSequence)
    assert max(events, key=lambda event: event.cpu_time_total).name == "step"
    match events:
        case [first, *_]:
            assert first == events[0]
        case _:
            pytest.fail("does not match a sequence pattern")


def test_one_profile_gives_one_list(profile):
    assert profile.events() is profile.events()


@pytest.mark.parametrize(
    "bounds",
    [
        slice(None),
        slice(2, 5),
        slice(None, None, -1),
        slice(-4, None),
        slice(9, 2, -3),
        slice(5, 5),
        slice(100, 200),
        slice(None, None, 5),
    ],
    ids=str,
)
def test_slices(events, bounds):
    part = events[bounds]
    assert type(part) is EventList
    assert list(part) == list(events)[bounds]
    assert [average.key for average in part.key_averages()] == list(dict.fromkeys(NAMES[bounds]))
    averages = events.key_averages()
    assert list(averages[bounds]) == list(averages)[bounds]
    assert (str(part) == "") == (len(part) == 0)


def test_equality(profile):
    events = profile.events()
    again = profile.profiler.trace.function_events()
    assert events == again and again is not events
    assert events == list(events) and list(events) == events
    assert not events != again
    assert events != events[1:] and events != list(events)[::-1] and events != [] and events != "x"
    assert events[0] == again[0] and hash(events[0]) == hash(again[0])
    assert len({*events, *again}) == 12
    other = record(three_steps).events()
    assert events != other and events[0] != other[0] and events[0] != events[1]
    averages = profile.key_averages()
    assert averages == averages and averages[0] is averages[0]
    assert averages != profile.key_averages()  # averages can be added to: each is its own
    with pytest.raises(TypeError, match="unhashable"):
        hash(events)


def test_concatenation(events):
    assert type(events + list(events)) is list and type(list(events) + events) is list
    assert list(events) + events == list(events) * 2
    both = events + events[:4]
    assert type(both) is EventList and [event.name for event in both] == NAMES + NAMES[:4]
    assert both.key_averages()[0].count == 4
    assert [*events, *events] == list(events) * 2
    with pytest.raises(TypeError):
        events + 3
    with pytest.raises(TypeError):
        3 + events


def test_changes(events):
    first, last = events[0], events[-1]
    events.reverse()
    assert events[0] == last
    events.sort(key=lambda event: event.time_range.start)
    assert events[0] == first and [event.name for event in events] == NAMES
    assert events.pop() == last and events.pop(0) == first
    events.insert(0, first)
    events.append(last)
    assert [event.name for event in events] == NAMES
    events.remove(first)
    with pytest.raises(ValueError):
        events.remove(first)
    with pytest.raises(ValueError):
        events.index(first)
    events[0] = first
    assert events[0] == first
    events[1:3] = []
    del events[-1]
    assert len(events) == 8
    events += [last]
    events.extend(events)
    assert len(events) == 18 and events.key_averages().self_cpu_time_total > 0
    assert "step" in events.table()
    events.clear()
    assert not events and events.table() == "" and events.key_averages() == []


def test_only_events_go_in(events):
    for bad in (3, None, "step", object()):
        with pytest.raises(TypeError, match="FunctionEvent"):
            EventList([bad])
        with pytest.raises(TypeError, match="FunctionEvent"):
            events.append(bad)
        with pytest.raises(TypeError, match="FunctionEvent"):
            events[0] = bad
        with pytest.raises(TypeError, match="FunctionEvent"):
            events.extend([events[0], bad])
    assert [event.name for event in events] == NAMES


def test_a_sort_that_raises_changes_nothing(events):
    before = list(events)
    with pytest.raises(ZeroDivisionError):
        events.sort(key=lambda event: 1 / 0)
    with pytest.raises(TypeError):
        events.sort()
    assert events == before


def test_construction(events):
    chosen = [event for event in events if event.name != "inner"]
    part = EventList(chosen, use_device=None, profile_memory=True, with_flops=True)
    assert list(part) == chosen and (part.profile_memory, part.with_flops, part.use_device) == (True, True, None)
    assert [average.key for average in part.key_averages()] == ["step", "load", "compute"]
    assert "CPU Mem" in part.table() and "inner" not in part.table()
    assert EventList(iter(chosen)) == chosen and EventList(events) == events and EventList() == []
    averages = EventList(sorted(events.key_averages(), key=lambda average: average.key))
    assert [average.key for average in averages] == ["compute", "inner", "load", "step"]
    assert averages.table(sort_by=None).index("compute") < averages.table().index("step")
    mixed = EventList([events[0], *events.key_averages()])
    assert mixed.table(sort_by="count").count("step") == 2
    assert EventList([events[0]], use_device="cuda")[0] == events[0]
    for bad in ({"use_device": 3}, {"unknown": 1}):
        with pytest.raises(TypeError):
            EventList([], **bad)
    with pytest.raises(TypeError):
        EventList([], None)


def test_repr_and_str(events):
    assert str(events) == events.table()
    assert repr(events) == repr(list(events))
    averages = events.key_averages()
    assert str(averages) == averages.table() and repr(averages) == repr(list(averages))
    first = events[0]
    assert repr(first).startswith(f"<FunctionEvent id={first.id} name=step overload_name= device_type=DeviceType.CPU ")
    assert f"cpu_children={[child.id for child in first.cpu_children]} None_time=0.000us" in repr(first)
    assert repr(averages[0]).startswith("<FunctionEventAvg key=step self_cpu_time=")
    assert "cuda_time=0.000us" in repr(averages[0])
    with_device = EventList(events[:1], use_device="xpu").key_averages()[0]
    assert "xpu_time=0.000us" in repr(with_device)
    assert repr(FunctionEventAvg()).startswith("<FunctionEventAvg key=None self_cpu_time=0.000us")


# --- events -------------------------------------------------------------------------------------------------------------


def test_tree(events):
    for i in (0, 4, 8):
        step, load, compute, inner = events[i : i + 4]
        assert step.cpu_parent is None and step.cpu_children == [load, compute]
        assert load.cpu_parent == step and compute.cpu_children == [inner] and inner.cpu_children == []


def test_user_ranges(events):
    for event in events:
        assert event.is_user_annotation and not event.is_python_function and event.scope == 7
        assert event.activity_type == "user_annotation" and event.trace_name == event.key == event.name
        assert event.thread == 1 or event.thread > 0
        assert event.device_type == opstrobe.DeviceType.CPU and event.device_resource_id == threading.get_native_id()
        assert (event.input_shapes, event.kwinputs, event.stack, event.kernels) == ([], {}, [], [])
        assert event.sequence_nr == -1 and event.fwd_thread == 0


def test_steps_have_one_name():
    schedule = opstrobe.schedule(wait=0, warmup=1, active=3, repeat=1)
    with opstrobe.profile(schedule=schedule) as profile:
        for _ in range(4):
            profile.step()
    steps = [event for event in profile.events() if event.name.startswith("ProfilerStep")]
    assert [step.name for step in steps] == ["ProfilerStep*"] * 3
    assert [step.trace_name for step in steps] == [f"ProfilerStep#{i}" for i in (1, 2, 3)]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\0b",
        'quote " back \\ slash',
        "ümlaut 汉字 🐍",
        pytest.param("lone \udc80 \ud83d", id="lone"),
        "x" * 100_000,
    ],
)
def test_names_come_back(name):
    def work():
        with record_function(name):
            pass

    events = record(work).events()
    assert [event.name for event in events] == [name]
    assert events.key_averages()[0].key == name
    shown = "".join("." if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in name)
    assert shown[:10] in re.sub(r"\.+", lambda dots: dots[0][:1], events.table())


def test_attributes_are_read_only(events):
    event = events[0]
    for name in vars(event):
        if name.endswith("_percent"):  # torch's own tables write there
            continue
        with pytest.raises(AttributeError):
            setattr(event, name, 1)
        with pytest.raises(AttributeError):
            delattr(event, name)
    with pytest.raises(AttributeError):
        event.nothing
    with pytest.raises(TypeError):
        FunctionEvent()


def test_own_attributes(events):
    events[3].mark = "mine"
    assert events[3].mark == "mine" and vars(events[3])["mark"] == "mine" and not hasattr(events[2], "mark")
    assert list(events)[3].mark == events[2].cpu_children[0].mark == "mine"
    events[3].mark = 2
    assert events[3:].copy()[0].mark == 2
    del events[3].mark
    assert not hasattr(events[3], "mark")
    events[0].self_cpu_percent = "12%"
    assert events[0].self_cpu_percent == "12%" and events[1].self_cpu_percent == -1


def test_vars(events):
    assert vars(events[0])["name"] == "step" and "cpu_children" in vars(events[0])
    assert vars(events.key_averages()[0])["key"] == "step"
    assert "name" in dir(events[0]) and "mark" not in dir(events[0])


def test_times(events):
    for event in events:
        assert isinstance(event.time_range, Interval)
        assert 0 <= event.time_range.start <= event.time_range.end
        assert event.time_range.elapsed_us() == pytest.approx(event.cpu_time_total, abs=1e-3)
        assert event.cpu_time_total_str.endswith(("us", "ms", "s"))
    assert [e.time_range.start for e in events] == sorted(e.time_range.start for e in events)


def test_interval():
    interval = Interval(1, 3.5)
    assert (interval.start, interval.end, interval.elapsed_us()) == (1.0, 3.5, 2.5)
    assert repr(interval) == "Interval(start=1.0, end=3.5)"
    assert interval == Interval(1.0, 3.5) != Interval(1, 2) and hash(interval) == hash(Interval(1, 3.5))
    assert interval != (1.0, 3.5)
    assert Interval(end=2, start=1).elapsed_us() == 1
    for bad in ((), (1,), ("a", 2), (1, 2, 3)):
        with pytest.raises(TypeError):
            Interval(*bad)


def test_kernel():
    assert Kernel("k", 0, 2.5) == ("k", 0, 2.5) and Kernel(name="k", device=0, duration=1).duration == 1


def test_a_list_outlives_its_profile():
    events = record(three_steps).events()
    event, child = events[0], events[0].cpu_children[0]
    averages = events.key_averages()
    del events
    gc.collect()
    assert event.name == "step" and child.cpu_parent == event and averages[0].cpu_children[0] == child


# --- averages -----------------------------------------------------------------------------------------------------------


def test_averages(events):
    averages = events.key_averages()
    assert [(average.key, average.count) for average in averages] == [(name, 3) for name in NAMES[:4]]
    for average in averages:
        group = [event for event in events if event.name == average.key]
        assert average.cpu_time_total == pytest.approx(sum(event.cpu_time_total for event in group))
        assert average.cpu_parent == group[0].cpu_parent and average.cpu_children == group[0].cpu_children
        assert (average.input_shapes, average.overload_name, average.stack) == ("", "", [])


def test_grouping_arguments(events):
    for arguments in (
        {"group_by_input_shapes": True},
        {"group_by_stack_n": -5},
        {"group_by_stack_n": 10**30},
        {"group_by_overload_name": True},
    ):
        assert len(events.key_averages(**arguments)) == 4
    assert events.key_averages(True)[0].input_shapes == []
    for bad in ({"group_by_input_shape": True}, {"group_by_stack_n": "a"}, {"nothing": 1}):
        with pytest.raises(TypeError):
            events.key_averages(**bad)


def test_averages_of_averages(events):
    with pytest.raises(AssertionError):
        events.key_averages().key_averages()
    with pytest.raises(AssertionError):
        EventList(list(events.key_averages())).key_averages()
    assert EventList().key_averages() == []


def test_adding(events):
    total = FunctionEventAvg()
    assert total.key is None and total.count == 0 and total.input_shapes is None and total.scope is None
    for event in events:
        if event.name == "load":
            assert total.add(event) is total
    expected = events.key_averages()[1]
    for name in ("key", "count", "cpu_time_total", "self_cpu_time_total", "scope", "is_user_annotation"):
        assert getattr(total, name) == getattr(expected, name)
    total += expected
    assert total.count == 6 and expected.count == 3
    for other in (events[0], events.key_averages()[0]):
        with pytest.raises(AssertionError, match="keys to match, but got step vs load"):
            total.add(other)
    for bad in (3, None, "load"):
        with pytest.raises(AssertionError):
            total.add(bad)
    assert FunctionEventAvg().add(FunctionEventAvg()).key is None
    with pytest.raises(TypeError):
        FunctionEventAvg(1)


def test_adding_shows_in_the_list(events):
    averages = events.key_averages()
    averages[0].add(events[0])
    assert averages[0].count == 4 and "           4" in averages.table()
    averages[0].mark = 1
    assert averages[0].mark == 1


def test_totals(events):
    total = events.total_average()
    assert (total.key, total.count) == ("Total", 12)
    assert total.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    assert events.key_averages().total_average().count == 12
    empty = EventList().total_average()
    assert (empty.key, empty.count, empty.cpu_time_total) == ("Total", 0, 0)
    assert EventList().self_cpu_time_total == 0
    with pytest.raises(AssertionError):
        total.add(events[0])


# --- tables and files ---------------------------------------------------------------------------------------------------


def test_table_arguments(events):
    assert "Self CPU time total" in events.table(row_limit=0)
    assert events.table(row_limit=2).count("step") == 1 and events.table(row_limit=-1).count("step") == 3
    assert events.table(row_limit=1e30) == events.table(row_limit=10**30) == events.table(row_limit=-1)
    assert "my header" in events.table(header="my header") and "top-level" in events.table(top_level_events_only=True)
    assert "step" in events.table("cpu_time_total", 10) and "inner" not in events.table(top_level_events_only=True)
    assert events.table(time_unit="h") == events.table(time_unit=3) == events.table(time_unit=None)
    assert "ms" in events.table(time_unit="ms")
    assert events.table(max_name_column_width=None) == events.table(max_name_column_width=100)
    for key in ("nothing", "", "name\0"):
        with pytest.raises((AttributeError, ValueError)):
            events.table(sort_by=key)
    for bad in (
        {"sort_by": "device_type"},
        {"sort_by": "cpu_parent"},
        {"sort_by": 3},
        {"row_limit": "a"},
        {"header": 3},
        {"unknown": 1},
    ):
        with pytest.raises(TypeError):
            events.table(**bad)


def test_export(events, tmp_path):
    for shown in (events, events[:1], events.key_averages()):
        path = tmp_path / "trace.json"
        shown.export_chrome_trace(str(path))
        rows = json.loads(path.read_text())["traceEvents"]
        assert sum(row.get("name") == "step" and row["ph"] == "X" for row in rows) == 3
    with pytest.raises(FileNotFoundError):
        events.export_chrome_trace(tmp_path / "no" / "trace.json")
    with pytest.raises(RuntimeError):
        EventList().export_chrome_trace(str(tmp_path / "empty.json"))
    with pytest.raises(TypeError):
        events.export_chrome_trace(3)


def test_metrics_of_stacks(events, tmp_path):
    metrics = events.supported_export_stacks_metrics()
    assert metrics == [f"self_{device}_time_total" for device in ("cpu", "cuda", "xpu", "privateuse1")]
    for wrong in ("nothing", "", None, 3, "self_cpu_time_total\0"):
        with pytest.raises(ValueError, match="self_cpu_time_total.*self_privateuse1_time_total"):
            events.export_stacks(tmp_path / "x", wrong)
    assert not (tmp_path / "x").exists()


# --- several traces -----------------------------------------------------------------------------------------------------


def test_lists_of_two_profiles():
    old, new = record(three_steps).events(), record(three_steps).events()
    both = new + old
    assert [event.name for event in both] == NAMES * 2
    # The order is as requested, and the times are those of one clock.
    assert both[0].time_range.start > both[12].time_range.start
    for mine, theirs in zip(both, [*new, *old]):
        assert mine.cpu_time_total == theirs.cpu_time_total and mine.self_cpu_time_total == theirs.self_cpu_time_total
        assert len(mine.cpu_children) == len(theirs.cpu_children) and mine.thread == theirs.thread
    assert [(average.key, average.count) for average in both.key_averages()] == [(name, 6) for name in NAMES[:4]]
    expected = new.self_cpu_time_total + old.self_cpu_time_total
    assert both.self_cpu_time_total == pytest.approx(expected)
    assert EventList([*new, *old]).key_averages().self_cpu_time_total == pytest.approx(expected)


def test_averages_of_two_profiles():
    first, second = (record(three_steps).key_averages() for _ in range(2))
    both = EventList([*first, *second])
    table = both.table(sort_by="key")
    assert table.count("compute") == 2 and both.total_average().count == 24
    first[1].add(second[1])
    assert first[1].count == 6 and "           6" in first.table()


def test_own_attributes_survive_merging():
    first, second = (record(three_steps).events() for _ in range(2))
    first[5].mark = "first"
    both = second + first
    assert both[12 + 5].mark == "first" and not hasattr(both[5], "mark")


def test_copies(events):
    events[2].mark = [1]
    for same in (copy.copy(events), events.copy(), events[:]):
        assert type(same) is EventList and same == events and same is not events
        same.pop()
        assert len(events) == 12
    assert copy.copy(events[2]) is events[2]
    deep = copy.deepcopy(events)
    assert str(deep) == str(events) and deep[2].mark == [1] and deep[2].mark is not events[2].mark
    average = events.key_averages()[0]
    other = copy.copy(average)
    other.add(events[0])
    assert (average.count, other.count) == (3, 4)
    assert copy.deepcopy(average).count == 3
    assert copy.copy(FunctionEventAvg()).key is None


def test_threads_share_a_list():
    def work():
        for _ in range(500):
            three_steps()

    events = record(work).events()
    failures = []

    def read():
        try:
            for i in range(20):
                averages = events.key_averages()
                assert [average.count for average in averages] == [1500] * 4
                assert averages.table() and events.table(row_limit=5) and events[i].cpu_memory_usage == 0
                assert len(events[i * 4].cpu_children) == 2
        except BaseException as error:
            failures.append(error)

    def change():
        mine = events[:]
        try:
            for i in range(20):
                mine.sort(key=lambda event: event.cpu_time_total, reverse=bool(i % 2))
                mine.table(row_limit=3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=target) for target in (read, change, read, change)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_table_sorts_events_by_any_attribute(events):
    def names(table):
        return [line.split()[0] for line in table.splitlines()[3:] if not line.startswith(("-", "Self"))]

    descending = sorted(events, key=lambda event: event.id, reverse=True)
    assert names(events.table(sort_by="id", row_limit=-1, max_name_column_width=None)) == [e.key for e in descending]
    with pytest.raises(AttributeError):
        events.table(sort_by="no_such_attribute")
    with pytest.raises(TypeError):
        events.table(sort_by="cpu_parent")


def test_a_width_is_not_negative(events):
    with pytest.raises(ValueError, match="negative"):
        events.table(max_name_column_width=-1)
