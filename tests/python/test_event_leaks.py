# SPDX-License-Identifier: Apache-2.0
"""Views release everything they hold: objects, references and memory."""

import copy
import gc
import pickle
import resource
import subprocess
import sys
import tempfile
import tracemalloc

import pytest

import opstrobe
from opstrobe import EventList, FunctionEventAvg, record_function


def profiled(count=20):
    with opstrobe.profile() as profile:
        for _ in range(count):
            with record_function("step"), record_function("inner"):
                pass
    return profile


def alive(name):
    gc.collect()
    return sum(
        type(thing).__name__ == name and type(thing).__module__.startswith("opstrobe") for thing in gc.get_objects()
    )


def read_all(events):
    for event in events:
        vars(event), repr(event), hash(event), event.cpu_children, event.cpu_parent
        event.self_cpu_memory_usage, event.self_cpu_time_total_str
    averages = events.key_averages(True, 3, True)
    for average in averages:
        vars(average), repr(average)
        total = FunctionEventAvg()
        total += average
    str(events), str(averages), repr(averages), events.total_average()


def change(events):
    mine = EventList(events)
    mine.sort(key=lambda event: event.id, reverse=True)
    mine[0:3] = mine[1:2]
    mine.key_averages()
    mine + events, mine[::-2], copy.copy(mine), list(mine) + mine


def misuse(events):
    for wrong in (
        lambda: events[10**6],
        lambda: events["a"],
        lambda: events.append(3),
        lambda: EventList([3]),
        lambda: events.table(sort_by="nothing"),
        lambda: events.table(row_limit="a"),
        lambda: events.key_averages().key_averages(),
        lambda: FunctionEventAvg().add(3),
        lambda: events.key_averages()[0].add(events[1]),
        lambda: events[0].nothing,
        lambda: setattr(events[0], "name", 1),
        lambda: events.index(3),
        lambda: events.remove(3),
        lambda: events.export_chrome_trace("/nonexistent/x"),
        lambda: events.export_stacks("a", "b"),
        lambda: events.sort(key=lambda event: 1 / 0),
        lambda: events + 3,
        lambda: hash(events),
    ):
        with pytest.raises(Exception):
            wrong()


def pickled(events):
    for thing in (events, events.key_averages(), events[0], events.key_averages()[0], list(events)):
        pickle.loads(pickle.dumps(thing))
    copy.deepcopy(events)


def mark(events):
    events[0].mark = events
    events[1].mark = events[1]
    events.key_averages()[0].mark = events


def two(events):
    both = events + profiled(5).events()
    both.key_averages()
    EventList([*events.key_averages(), *both.key_averages()]).table()


def called(depth):
    with record_function("called"):
        if depth:
            called(depth - 1)


def with_stacks(events):
    with opstrobe.profile(with_stack=True) as profile:
        called(3)
    read_all(profile.events())
    averages = profile.key_averages(group_by_stack_n=2)
    pickle.loads(pickle.dumps([averages, averages[0], *profile.events()[:2]]))
    EventList([*averages, *events.key_averages()]).table()
    for end in ("", ".svg", ".speedscope.json"):
        profile.export_stacks(f"{FOLDER.name}/x{end}")


FOLDER = tempfile.TemporaryDirectory()
clear_caches = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache

USES = [read_all, change, misuse, pickled, two, with_stacks]


@pytest.mark.parametrize("use", [*USES, mark])
def test_everything_is_freed(use):
    before = {name: alive(name) for name in ("Trace", "EventList", "FunctionEvent", "FunctionEventAvg")}
    profile = profiled()
    use(profile.events())
    del profile
    assert {name: alive(name) for name in before} == before


@pytest.mark.parametrize("use", USES)
def test_references_balance(use):
    events = profiled().events()
    watched = [
        None,
        True,
        False,
        "step",
        0,
        -1,
        EventList,
        FunctionEventAvg,
        type(events[0]),
        type(events[0].time_range),
        opstrobe.DeviceType.CPU,
        events[0].name,
        events.use_device,
    ]
    use(events)
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(50):
        use(events)
    gc.collect()
    after = [sys.getrefcount(thing) for thing in watched]
    for thing, x, y in zip(watched, before, after):
        if thing is not None:  # an empty entry of the interpreter's cache of attributes is a reference to None
            assert abs(y - x) < 40, (thing, x, y)
        assert y - x < 40, (thing, x, y)


@pytest.mark.parametrize("use", USES)
def test_memory_stays_flat(use):
    # The interpreter's cache of attributes keeps the names that str.format and pickle create each time, some 4000 at
    # most: it is emptied each time.
    events = profiled().events()
    for _ in range(20):
        use(events)
    clear_caches()
    gc.collect()
    tracemalloc.start()
    try:
        use(events)
        clear_caches()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            use(events)
        clear_caches()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 2000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def growth():
    """Of the memory of this process."""

    def cycle():
        for use in USES:
            use(profiled(200).events())
        gc.collect()

    for _ in range(5):
        cycle()
    before = resident()
    for _ in range(40):
        cycle()
    return resident() - before


def test_c_memory_stays_flat():
    """In its own process, without the threads that other tests leave."""
    printed = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True, timeout=300).stdout
    assert int(printed.split()[-1]) < 4 << 20


def test_a_long_list_makes_no_objects():
    with opstrobe.profile() as profile:
        for _ in range(100_000):
            with record_function("a"):
                pass
    events = profile.events()
    tracemalloc.start()
    try:
        assert len(events) == 100_000 and events[50_000].name == "a"
        assert events[10:].key_averages()[0].count == 99_990
        assert "a" in events.table(row_limit=3) and events.self_cpu_time_total > 0
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    print(growth())
