# SPDX-License-Identifier: Apache-2.0
"""Requirements for every profile of a real program. Also imported by the programs that run in separate processes."""

import json

import opstrobe

ALL_OPTIONS = {
    "activities": [opstrobe.ProfilerActivity.CPU],
    "record_shapes": True,
    "profile_memory": True,
    "with_flops": True,
    "with_modules": True,
    "with_stack": True,
}


def names_of(profile):
    return {event.name for event in profile.events()}


def judge(profile, path):
    """Writes the trace to `path`; the document. Tables and trace are there, whole, and the same after reading back."""
    events = profile.events()
    assert len(events) > 0
    profile.export_chrome_trace(str(path))
    with open(path) as file:
        document = json.load(file, parse_constant=_refuse)
    slices = sum(row["ph"] in ("X", "b") for row in document["traceEvents"])
    assert slices >= sum(event.name != "[memory]" for event in events)

    again = opstrobe.read(str(path))
    for group in ({}, {"group_by_input_shape": True}):
        table = profile.key_averages(**group).table(sort_by="cpu_time_total", row_limit=-1)
        assert len(table.splitlines()) > 6
        assert again.key_averages(**group).table(sort_by="cpu_time_total", row_limit=-1) == table
    return document


def cuts(rows):
    """Each annotation that begins in another annotation or operator of its thread and ends after it, with that one's name.
    Perfetto has no place for it, as in torch's files. Everything else nests, or is written as a pair."""
    found = []
    still_open = {}
    spans = [(round(row["ts"] * 1000), round(row["dur"] * 1000), row) for row in rows if row["ph"] == "X"]
    for start, duration, row in sorted(spans, key=lambda span: (span[0], -span[1])):
        thread = still_open.setdefault((row["pid"], row["tid"]), [])
        while thread and thread[-1][0] <= start:
            thread.pop()
        cut = [inner for end, inner in thread if end < start + duration]
        if cut:
            ranges = [inner["name"] for inner in cut if inner["cat"] in ("user_annotation", "cpu_op")]
            assert row["cat"] == "user_annotation" and ranges, (row, cut)
            found.append((row["name"], ranges[0]))
        else:
            thread.append((start + duration, row))
    return found


def drops(found):
    """What Perfetto has to complain about in a trace with these cuts."""
    return {"slice_drop_overlapping_complete_event": len(found)} if found else {}


def _refuse(constant):
    raise AssertionError(f"{constant} is not JSON")
