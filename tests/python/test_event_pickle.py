# SPDX-License-Identifier: Apache-2.0
"""Pickled views: in this process and in another, and what damaged pickles do."""

import multiprocessing
import pickle
import random
import subprocess
import sys

import pytest

import opstrobe
from opstrobe import EventList, FunctionEventAvg, Interval, Kernel, record_function


def ranges(name="umlaut ü \udc80"):
    with opstrobe.profile() as profile:
        for _ in range(5):
            with record_function("step"), record_function(name):
                pass
    return profile


def operators():
    torch = pytest.importorskip("torch")
    layer, x = torch.nn.Linear(4, 5), torch.randn(3, 4)
    with opstrobe.profile(record_shapes=True, profile_memory=True, with_flops=True) as profile:
        layer(x).sum().backward()
        torch.cat([x, x])
        del x
    return profile


@pytest.fixture(params=[ranges, operators])
def profile(request):
    return request.param()


def there_and_back(thing, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(thing, protocol))


def assert_same_events(a, b):
    assert [vars(x) | {"cpu_children": None, "cpu_parent": None} for x in a] == [
        vars(x) | {"cpu_children": None, "cpu_parent": None} for x in b
    ]
    assert [repr(x) for x in a] == [repr(x) for x in b]
    assert [(x.cpu_parent is None, x.self_cpu_memory_usage) for x in a] == [
        (x.cpu_parent is None, x.self_cpu_memory_usage) for x in b
    ]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_events(profile, protocol):
    events = profile.events()
    back = there_and_back(events, protocol)
    assert type(back) is EventList and back == there_and_back(back)[:0] + back
    assert_same_events(back, events)
    assert (back.profile_memory, back.with_flops) == (events.profile_memory, events.with_flops)
    for grouping in ({}, {"group_by_input_shapes": True}):
        assert back.key_averages(**grouping).table() == events.key_averages(**grouping).table()
    assert back.table() == events.table() == str(back)


def test_one_event(profile):
    for event in profile.events():
        back = there_and_back(event)
        assert repr(back) == repr(event)
        assert (back.cpu_parent is None) == (event.cpu_parent is None)
    first, second, again = there_and_back([profile.events()[0], profile.events()[1], profile.events()[0]])
    assert first == again != second and second in first.cpu_children or not first.cpu_children


def test_events_share_their_trace(profile):
    events = list(profile.events())
    assert len(pickle.dumps(events)) < len(pickle.dumps(events[:1])) + 200 * len(events)
    assert len(pickle.dumps(profile.events())) < 800 + 300 * len(events)


@pytest.mark.parametrize("grouping", [{}, {"group_by_input_shape": True}, {"group_by_overload_name": True}], ids=str)
def test_averages(profile, grouping):
    averages = profile.key_averages(**grouping)
    back = there_and_back(averages)
    assert [repr(x) for x in back] == [repr(x) for x in averages]
    for arguments in ({}, {"sort_by": "count"}, {"top_level_events_only": True}):
        assert back.table(**arguments) == averages.table(**arguments)
    for a, b in zip(back, averages):
        assert vars(a) | {"cpu_children": None, "cpu_parent": None} == vars(b) | {
            "cpu_children": None,
            "cpu_parent": None,
        }
        assert getattr(a.cpu_parent, "name", None) == getattr(b.cpu_parent, "name", None)
    back[0].add(averages[0])
    assert back[0].count == 2 * averages[0].count
    # An average that was returned is a separate object, and is pickled as such.
    assert [repr(x) for x in there_and_back(list(averages))] == [repr(x) for x in averages]
    assert repr(there_and_back(averages.total_average())) == repr(averages.total_average())


def test_averages_do_not_take_their_trace_along():
    with opstrobe.profile() as profile:
        for _ in range(10_000):
            with record_function("a"):
                pass
    assert len(pickle.dumps(profile.key_averages())) < 2000 < len(pickle.dumps(profile.events()))
    assert len(pickle.dumps(profile.key_averages()[0])) < 2000


def test_small_things():
    assert there_and_back(Interval(1, 2)) == Interval(1, 2)
    assert there_and_back(Kernel("k", 0, 1.5)) == Kernel("k", 0, 1.5)
    assert there_and_back(EventList()) == []
    assert there_and_back(EventList().key_averages()) == []
    assert there_and_back(FunctionEventAvg()).key is None
    assert there_and_back(EventList().total_average()).key == "Total"
    assert there_and_back(EventList(profile_memory=True)).profile_memory


def test_own_attributes(profile):
    events = profile.events()
    events[1].mark = {"deep": [1]}
    events[0].other = events[1]
    for back in (there_and_back(events), there_and_back(list(events))):
        assert back[1].mark == {"deep": [1]} and back[0].other == back[1] and not hasattr(back[1], "other")
    averages = profile.key_averages()
    averages[0].mark = 1
    assert there_and_back(averages)[0].mark == 1 and there_and_back(averages[0]).mark == 1


def test_changed_and_mixed_lists(profile):
    events = profile.events()
    chosen = events[::-1]
    chosen.pop()
    assert [x.name for x in there_and_back(chosen)] == [x.name for x in chosen]
    mixed = EventList([events[0], *profile.key_averages()])
    assert [repr(x) for x in there_and_back(mixed)] == [repr(x) for x in mixed]
    two = events + ranges().events()
    assert there_and_back(two).table() == two.table()


def profile_in_child(queue):
    profile = ranges("in the child")
    queue.put((profile.events(), profile.key_averages(), profile.events()[1]))


def test_from_another_process():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=profile_in_child, args=(queue,))
    child.start()
    events, averages, event = queue.get(timeout=60)
    child.join()
    assert [x.name for x in events] == ["step", "in the child"] * 5
    assert [(x.key, x.count) for x in averages] == [("step", 5), ("in the child", 5)]
    assert event.name == "in the child" and event.cpu_parent.name == "step"
    # Threads of two processes stay apart in a list of both.
    both = events + ranges("in the parent").events()
    assert len({x.thread for x in both}) == 2
    assert both.key_averages()[0].count == 10 and "in the parent" in both.table()


def test_to_a_process_that_has_imported_nothing(tmp_path):
    profile = ranges()
    (tmp_path / "pickled").write_bytes(pickle.dumps((profile.events(), profile.key_averages())))
    code = "import pickle; a, b = pickle.load(open('pickled', 'rb')); print(len(a), b[0].count, a[1].cpu_parent.name)"
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (out.stdout, out.stderr) == ("10 5 step\n", "")


def test_damaged_pickles_do_not_crash(profile):
    rng = random.Random(1)
    pickles = [
        pickle.dumps(thing)
        for thing in (profile.events(), profile.key_averages(), profile.events()[0], profile.key_averages()[0])
    ]
    loaded = refused = 0
    for _ in range(3000):
        data = bytearray(rng.choice(pickles))
        # Only what is ours: in the bytes objects, not in pickle's own instructions, which may do anything.
        start = max(data.find(b"OPSPACK1"), 0)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(start, len(data) - 200)] = rng.randrange(256)
        try:
            thing = pickle.loads(bytes(data))
            repr(thing), str(thing)
            if type(thing) is EventList:
                list(thing)
            loaded += 1
        except Exception:
            refused += 1
    assert loaded and refused


def test_what_a_file_says_of_itself(tmp_path):
    """Its times count from a base, and it has rows that are not events."""
    operators().export_chrome_trace(tmp_path / "t.json")
    trace = opstrobe.read(tmp_path / "t.json").trace
    assert there_and_back(trace).views_json() == trace.views_json()
