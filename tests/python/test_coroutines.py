# SPDX-License-Identifier: Apache-2.0
"""Ranges that coroutines hold open while others run on their thread."""

import asyncio
import contextvars
import json
import re
import sys
import threading
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import opstrobe  # noqa: E402
from opstrobe import profile, record_function  # noqa: E402


def document_of(p, tmp_path, name="trace.json"):
    path = str(tmp_path / name)
    p.export_chrome_trace(path)
    with open(path) as file:
        return json.load(file), path


def figures(events):
    """All that tables are made of."""
    return [
        (
            event.name,
            event.thread,
            event.is_async,
            event.time_range.start,
            event.time_range.end,
            event.self_cpu_time_total,
            event.cpu_parent.name if event.cpu_parent else None,
        )
        for event in events
    ]


def averages(p):
    return [(row.key, row.count, row.self_cpu_time_total, row.cpu_time_total, row.is_async) for row in p.key_averages()]


def boxes_that_cut(document):
    """Complete events of one thread that overlap in part: viewers drop one of them."""
    threads = defaultdict(list)
    for row in document["traceEvents"]:
        if row["ph"] == "X":
            start = round(row["ts"] * 1000)
            threads[row["pid"], row["tid"]].append((start, start + round(row["dur"] * 1000), row["name"]))
    found = []
    for rows in threads.values():
        open_rows = []
        for row in sorted(rows, key=lambda row: (row[0], -row[1])):
            while open_rows and open_rows[-1][1] <= row[0]:
                open_rows.pop()
            if open_rows and open_rows[-1][1] < row[1]:
                found.append((open_rows[-1], row))
            open_rows.append(row)
    return found


def places(document):
    """By name of a range, what its rows' threads are called, without the number of the thread."""
    names = {row["tid"]: row["args"]["name"] for row in document["traceEvents"] if row["name"] == "thread_name"}
    found = {}
    for row in document["traceEvents"]:
        if row.get("cat") == "user_annotation":
            assert row["ph"] == "X"
            label = names[row["tid"]]
            found[row["name"]] = label.partition(" of thread ")[0] if " of thread " in label else "thread"
    return found


def checked(p, tmp_path):
    """What holds for every profile: nothing is negative, nothing counts twice, and its file says the same. Its document."""
    document, path = document_of(p, tmp_path)
    assert boxes_that_cut(document) == []
    events = p.events()
    assert min((event.self_cpu_time_total for event in events), default=0) >= 0
    by_thread = defaultdict(list)
    for event in events:
        by_thread[event.thread].append(event)
    for of_thread in by_thread.values():
        wall = max(e.time_range.end for e in of_thread) - min(e.time_range.start for e in of_thread)
        assert sum(e.self_cpu_time_total for e in of_thread) <= wall + 0.001 * len(of_thread)
    again = opstrobe.read(path)
    assert figures(again.events()) == figures(events)
    assert averages(again) == averages(p)
    return document


def parents(p):
    return {event.name: event.cpu_parent.name if event.cpu_parent else None for event in p.events()}


async def turn():
    """Lets the others run."""
    await asyncio.sleep(0)


@pytest.mark.parametrize("with_stack", [False, True])
def test_tasks_of_gather(tmp_path, with_stack):
    async def work(name, rounds):
        with record_function(name):
            for i in range(rounds):
                with record_function(f"{name} {i}"):
                    torch.ones(3) + 1
                    await turn()
                torch.ones(3).mul(2)
                await turn()

    async def main():
        await asyncio.gather(work("a", 3), work("b", 5))

    with profile(with_stack=with_stack) as p:
        with record_function("all"):
            asyncio.run(main())
    document = checked(p, tmp_path)
    where = places(document)
    assert where["all"] == "thread"
    assert where["a"].startswith("asyncio Task-")
    assert where["b"].startswith("asyncio Task-")
    assert where["a"] != where["b"]
    (a,) = [event for event in p.events() if event.name == "a"]
    assert a.is_async
    assert a.self_cpu_time_total == 0
    assert a.cpu_children == []
    operators = [event for event in p.events() if event.name == "aten::mul"]
    assert len(operators) == 8
    if not with_stack:
        assert {event.cpu_parent.name for event in operators} == {"all"}


def test_work_of_another_task_is_not_part_of_a_range(tmp_path):
    """The range of one is opened and closed around all that the other does, which has no range."""

    async def waits():
        with record_function("waits"):
            torch.ones(3)
            await turn()
            await turn()

    async def runs():
        torch.ones(3).neg()

    async def main():
        await asyncio.gather(waits(), runs())

    with profile() as p:
        asyncio.run(main())
    where = places(checked(p, tmp_path))
    assert where["waits"].startswith("asyncio Task-")
    assert parents(p)["aten::neg"] is None


def test_tasks_that_nest_by_chance(tmp_path):
    async def outer():
        with record_function("outer"):
            await turn()

    async def inner():
        with record_function("inner"):
            torch.ones(3).neg()

    async def main():
        await asyncio.gather(outer(), inner())

    with profile() as p:
        asyncio.run(main())
    where = places(checked(p, tmp_path))
    assert where["outer"].startswith("asyncio Task-")
    assert where["inner"] == "thread"
    assert parents(p)["inner"] is None
    assert parents(p)["aten::neg"] == "inner"


def test_one_task_nests(tmp_path):
    async def main():
        with record_function("outer"):
            await turn()
            with record_function("inner"):
                await turn()
                contextvars.copy_context().run(called)

    def called():
        with record_function("called"):
            torch.ones(3).neg()

    with profile() as p:
        with record_function("all"):
            asyncio.run(main())
    assert set(places(checked(p, tmp_path)).values()) == {"thread"}
    assert parents(p)["outer"] == "all"
    assert parents(p)["inner"] == "outer"
    assert parents(p)["called"] == "inner"
    assert parents(p)["aten::neg"] == "called"
    assert not any(event.is_async for event in p.events())


def test_async_generator(tmp_path):
    """Its ranges lie in the task that iterates; of two that are iterated in turns both wait."""

    async def generate(name):
        with record_function(name):
            for i in range(3):
                torch.ones(2)
                await turn()
                yield i

    async def alone():
        async for _ in generate("generated"):
            with record_function("body"):
                torch.ones(2).neg()

    async def in_turns(name):
        async for _ in generate(name):
            torch.ones(2).sin()

    async def main():
        await alone()
        await asyncio.gather(in_turns("left"), in_turns("right"))

    with profile() as p:
        asyncio.run(main())
    where = places(checked(p, tmp_path))
    assert where["generated"] == "thread"
    assert parents(p)["body"] == "generated"
    assert where["left"].startswith("asyncio Task-")
    assert where["right"].startswith("asyncio Task-")
    assert parents(p)["aten::sin"] is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup came with Python 3.11")
def test_task_group(tmp_path):
    async def work(name):
        with record_function(name):
            torch.ones(2)
            await turn()

    async def main():
        async with asyncio.TaskGroup() as group:
            for i in range(4):
                group.create_task(work(f"work {i}"), name=f"worker {i}")
            with record_function("group"):
                await turn()

    with profile() as p:
        asyncio.run(main())
    where = places(checked(p, tmp_path))
    assert [where[f"work {i}"] for i in range(3)] == [f"asyncio worker {i}" for i in range(3)]
    assert where["group"].startswith("asyncio Task-")


def test_greenlets(tmp_path):
    greenlet = pytest.importorskip("greenlet")

    def work(name):
        with record_function(name):
            torch.ones(2).neg()
            main.switch()
            torch.ones(2).sin()

    with profile() as p:
        main = greenlet.getcurrent()
        with record_function("all"):
            first, second = greenlet.greenlet(work), greenlet.greenlet(work)
            first.switch("first")
            second.switch("second")
            first.switch()
            second.switch()
    where = places(checked(p, tmp_path))
    assert where == {"all": "thread", "first": "greenlet", "second": "greenlet"}
    assert parents(p)["aten::sin"] == "all"


def test_threads_with_loops(tmp_path):
    async def work(name):
        with record_function(name):
            torch.ones(2)
            await turn()

    async def main(name):
        await asyncio.gather(work(f"{name} 1"), work(f"{name} 2"))

    with profile() as p:
        threads = [threading.Thread(target=lambda i=i: asyncio.run(main(f"thread {i}"))) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    document = checked(p, tmp_path)
    labels = {row["args"]["name"] for row in document["traceEvents"] if row["name"] == "thread_name"}
    assert len({label.rpartition(" ")[2] for label in labels if label.startswith("asyncio ")}) == 3


def test_steps_stay_on_their_thread(tmp_path):
    async def other():
        for _ in range(4):
            with record_function("other"):
                torch.ones(2)
                await turn()

    async def main(p):
        task = asyncio.create_task(other())
        for _ in range(3):
            torch.ones(2)
            await turn()
            p.step()
        await task

    with profile(schedule=lambda step: opstrobe.ProfilerAction.RECORD) as p:
        asyncio.run(main(p))
    document = checked(p, tmp_path)
    steps = [row for row in document["traceEvents"] if row["name"].startswith("ProfilerStep#")]
    assert len(steps) >= 3
    assert len({row["tid"] for row in steps}) == 1
    assert steps[0]["tid"] < 10**9


def test_ranges_closed_in_another_order(tmp_path):
    with profile() as p:
        first, second = record_function("first"), record_function("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        torch.ones(2).neg()
        second.__exit__(None, None, None)
    assert places(checked(p, tmp_path)) == {"first": "thread", "second": "overlapping ranges"}
    assert parents(p)["aten::neg"] is None


@pytest.mark.parametrize("make", [torch.profiler.record_function, opstrobe._core._RecordFunctionFast])
def test_other_ranges(tmp_path, make):
    async def work(name):
        with make(name):
            torch.ones(2)
            await turn()

    async def main():
        await asyncio.gather(work("left"), work("right"))

    with profile() as p:
        asyncio.run(main())
    checked(p, tmp_path)
    (left,) = [event for event in p.events() if event.name == "left"]
    assert left.is_async
    assert left.self_cpu_time_total == 0


def test_perfetto(tmp_path):
    async def work(name):
        with record_function(name):
            await turn()

    async def main():
        await asyncio.gather(work("left"), work("right"))

    with profile() as p:
        asyncio.run(main())
    path = tmp_path / "trace.pftrace"
    p.export_chrome_trace(str(path))
    assert re.search(rb"asyncio Task-\d+ of thread \d+", path.read_bytes())


@pytest.mark.parametrize("stacks", [False, True])
def test_no_time_is_negative(stacks, tmp_path):
    async def work(number):
        with record_function(f"work{number}"):
            for _ in range(3):
                torch.ones(4)
                await asyncio.sleep(0.001 * (number + 1))

    async def together():
        await asyncio.gather(*(work(number) for number in range(8)))

    with profile(with_stack=stacks) as p, record_function("all"):
        asyncio.run(together())
    events = p.events()
    ranges = [event for event in events if event.name.startswith("work")]
    assert len(ranges) == 8
    (whole,) = [event for event in events if event.name == "all"]
    assert sum(event.cpu_time_total for event in ranges) > 2 * whole.cpu_time_total
    assert all(row.self_cpu_time_total >= 0 for row in p.key_averages())
    checked(p, tmp_path)


def test_many_tasks(tmp_path):
    async def work(number):
        with record_function(f"work {number}"):
            await turn()
            with record_function(f"part of {number}"):
                torch.ones(1)
                await turn()

    async def main():
        await asyncio.gather(*(work(number) for number in range(1100)))

    with profile() as p, record_function("all"):
        asyncio.run(main())
    document = checked(p, tmp_path)
    (whole,) = [event for event in p.events() if event.name == "all"]
    assert whole.self_cpu_time_total > 0
    tracks = {row["tid"]: row["args"]["name"] for row in document["traceEvents"] if row["name"] == "thread_name"}
    coroutines = defaultdict(set)
    for row in document["traceEvents"]:
        if row.get("cat") == "user_annotation" and row["name"] != "all":
            label = row["args"].get("Coroutine", tracks[row["tid"]].partition(" of thread ")[0])
            coroutines[label].add(row["name"].rpartition(" ")[2])
    assert len(coroutines) == 1100
    assert all(len(numbers) == 1 for numbers in coroutines.values())
    assert sum(name.startswith("further coroutines ") for name in tracks.values()) == 100


# --- any interleaving


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["open", "close", "wait", "run", "call"]), min_size=1, max_size=12),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_any_interleaving(tmp_path_factory, programs, with_stack):
    async def work(number, program):
        ranges = []
        for i, action in enumerate(program):
            if action == "open":
                ranges.append(record_function(f"{number}.{i}"))
                ranges[-1].__enter__()
            elif action == "close" and ranges:
                ranges.pop(i % len(ranges)).__exit__(None, None, None)
            elif action == "wait":
                await turn()
            elif action == "run":
                torch.ones(1)
            elif action == "call":
                with record_function(f"call {number}.{i}"):
                    torch.ones(1)
        while ranges:
            ranges.pop().__exit__(None, None, None)

    async def main():
        await asyncio.gather(*(work(i, program) for i, program in enumerate(programs)))

    with profile(with_stack=with_stack) as p:
        asyncio.run(main())
    checked(p, tmp_path_factory.mktemp("trace"))
