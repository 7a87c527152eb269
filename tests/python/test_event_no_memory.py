# SPDX-License-Identifier: Apache-2.0
"""Every Python allocation of every use of the views fails once: MemoryError, and no crash. In a separate process."""

import subprocess
import sys

import pytest

pytest.importorskip("_testcapi")

PROGRAM = """
import copy, operator, pickle, sys
import _testcapi
import opstrobe
from opstrobe import EventList, FunctionEventAvg, record_function

def profiled():
    with opstrobe.profile() as profile:
        for _ in range(3):
            with record_function("step"), record_function("inner"):
                pass
    return profile.events()

events, others = profiled(), profiled()
averages = events.key_averages(True)
pickled = pickle.dumps([events, averages, events[0], averages[0]])

def called(depth):
    with record_function("called"):
        if depth:
            called(depth - 1)

with opstrobe.profile(with_stack=True) as profile:
    called(2)
calls = profile.events()
pickled_calls = pickle.dumps(calls)
groups = calls.key_averages(group_by_stack_n=2)

by_id = operator.attrgetter("id")

def fresh():
    return pickle.loads(pickled)[0]

def mark():
    mine = fresh()
    mine[0].mark = 1
    return mine[0].mark, mine[0].cpu_children, mine[0].flow_id, mine.key_averages()

uses = [
    lambda: vars(events[0]),
    lambda: repr(events[1]),
    lambda: vars(averages[0]),
    lambda: repr(events.key_averages()),
    lambda: events.table(),
    lambda: events[::2],
    lambda: events + others,
    lambda: events[:].sort(key=by_id),
    lambda: EventList(list(events)).key_averages(),
    lambda: EventList([events[0], averages[0]]).table(),
    lambda: EventList([*events, *others]).key_averages(),
    lambda: EventList([*averages, *others.key_averages()]).table(),
    lambda: pickle.dumps(events),
    lambda: pickle.dumps(averages),
    lambda: pickle.dumps(events.key_averages()[0]),
    lambda: pickle.loads(pickled),
    lambda: events.total_average(),
    lambda: FunctionEventAvg().add(events[0]),
    lambda: copy.copy(averages[0]),
    lambda: events == others,
    lambda: [event.stack for event in pickle.loads(pickled_calls)],
    lambda: [row.stack for row in calls.key_averages(group_by_stack_n=3)],
    lambda: calls.table(),
    lambda: groups.table(),
    lambda: pickle.dumps(groups),
    lambda: EventList([*groups, *averages]).table(),
    lambda: calls.export_stacks("/dev/null", "self_cpu_time_total"),
    mark,
]
for number, use in enumerate(uses):
    use()
    last = 0  # the last allocation whose failure was felt
    nth = 0
    while nth < last + 150:
        nth += 1
        _testcapi.set_nomemory(nth - 1, nth)
        try:
            try:
                use()
            finally:
                _testcapi.remove_mem_hooks()
        except (MemoryError, pickle.PicklingError):
            last = nth
    assert last, number
    use()
print("done", repr(events) == repr(events), len(events))
"""


def test_every_allocation_fails_once():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (out.returncode, out.stdout, out.stderr) == (0, "done True 6\n", "")
