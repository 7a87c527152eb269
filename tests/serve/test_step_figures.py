# SPDX-License-Identifier: Apache-2.0
"""Views of some steps, against sums over the events of those steps in the file, made here by plain loops."""

import collections
import gzip
import json
import math
import pathlib

import pytest
from conftest import SHARED, serving

SYNTHETIC = SHARED / "kineto-tb" / "synthetic"
RESNET = SHARED / "kineto-tb" / "samples-2021-06" / "resnet50_num_workers_0"
CNN = SHARED / "kineto-tb" / "recorded" / "cnn-full"
# torch of 2021 wrote other categories.
HOST = {"cpu_op", "operator", "user_annotation", "cuda_runtime", "runtime", "python_function"}
OPERATORS = {"cpu_op", "operator"}
BYTES = {"long int": 8, "float": 4, "c10::Half": 2}


class Steps:
    """The events of the steps with these numbers: what runs on the host while they do, and on a device because of it."""

    def __init__(self, path, first, last):
        self.events = json.loads(gzip.decompress(pathlib.Path(path).read_bytes()))["traceEvents"]
        steps = [event for event in self.named("ProfilerStep#") if first <= int(event["name"][13:]) <= last]
        self.begin = min(step["ts"] for step in steps)
        self.end = max(step["ts"] + step["dur"] for step in steps)
        self.host = [
            event
            for event in self.spans(HOST)
            if event["ts"] < self.end and event["ts"] + event["dur"] > self.begin  # what reaches in is whole
        ]
        calls = {event["args"].get("correlation") for event in self.host if "runtime" in event["cat"].lower()}
        self.kernels = [event for event in self.spans({"kernel"}) if event["args"]["correlation"] in calls]

    def spans(self, categories):
        return [event for event in self.events if event["ph"] == "X" and event.get("cat", "").lower() in categories]

    def named(self, text):
        return [event for event in self.events if event.get("name", "").startswith(text) and event["ph"] == "X"]

    def operators(self):
        """An operator that calls itself, for another type, counts once."""
        found = [event for event in self.host if event["cat"].lower() in OPERATORS and not is_annotation(event)]
        last, outermost = {}, []
        for event in sorted(found, key=lambda event: (event["ts"], -event["dur"])):
            outer = last.get((event["tid"], event["name"]))
            if not outer or event["ts"] >= outer["ts"] + outer["dur"]:
                outermost.append(event)
                last[event["tid"], event["name"]] = event
        return outermost

    def records(self):
        marks = [event for event in self.events if event["name"] == "[memory]"]
        return [mark for mark in marks if self.begin <= mark["ts"] < self.end]


def is_annotation(event):
    return event["name"].startswith(("ProfilerStep#", "enumerate(", "Optimizer."))


def sums_by_name(events):
    """Calls and time of each name."""
    sums = collections.defaultdict(lambda: [0, 0])
    for event in events:
        sums[event["name"]][0] += 1
        sums[event["name"]][1] += event["dur"]
    return dict(sums)


def approximately(sums):
    return {name: [calls, pytest.approx(time, abs=0.05 * calls)] for name, (calls, time) in sums.items()}


CASES = [
    (SYNTHETIC / "steps-all-categories", (2, 2)),
    (SYNTHETIC / "steps-all-categories", (2, 3)),
    (SYNTHETIC / "distributed-nccl-2x2", (1, 1)),
    (RESNET, (7, 7)),
    (RESNET, (8, 9)),
    (CNN, (2, 2)),
]


@pytest.mark.parametrize("folder, steps", CASES)
def test_operators_and_kernels(folder, steps):
    path = sorted(folder.glob("*.gz"))[0]
    wanted = Steps(path, *steps)
    with serving(path) as server:
        (trace,) = server.traces()
        views = server.json(f"traces/{trace['id']}/views", steps=f"{steps[0]}:{steps[1]}", parts="operators,kernels")
        whole = server.json(f"traces/{trace['id']}/views", parts="operators,kernels")
    assert views != whole
    operators = {row["name"]: [row["calls"], row["host_total"]] for row in views["operators"]["rows"]}
    assert operators == approximately(sums_by_name(wanted.operators()))
    kernels = views["kernels"]["rows"] if views["kernels"] else []
    assert {row["name"]: [row["calls"], row["total"]] for row in kernels} == sums_by_name(wanted.kernels)


def test_memory_and_modules():
    (path,) = CNN.glob("*.gz")
    wanted = Steps(path, 2, 2)
    with serving(path) as server:
        (trace,) = server.traces()
        memory = server.json(f"traces/{trace['id']}/views", steps=2, parts="memory")["memory"]
        modules = server.json(f"traces/{trace['id']}/views", steps=2, parts="modules")["modules"]
    records = wanted.records()
    assert memory["records"] == len(records)
    assert memory["curve"]["devices"]["CPU"]["max_allocated"] == max(
        record["args"]["Total Allocated"] for record in records
    )
    assert memory["curve"]["devices"]["CPU"]["points"] == len(records)

    calls = collections.Counter(
        event["name"].removeprefix("nn.Module: ") for event in wanted.host if event["name"].startswith("nn.Module: ")
    )
    found = collections.Counter()
    rows = list(modules)
    while rows:
        row = rows.pop()
        found[row["name"]] += row["occurrences"]
        rows += row["children"]
    assert found == calls and calls


def test_ranks():
    folder = SYNTHETIC / "distributed-nccl-2x2"
    with serving(folder) as server:
        ids = ",".join(trace["id"] for trace in server.traces())
        found = server.json(f"traces/{ids}/distributed", steps=2)
    assert set(found["overlap"]) == {"2", "all"} and found["overlap"]["2"] == found["overlap"]["all"]
    for worker in found["workers"]:
        wanted = Steps(folder / f"{worker}.pt.trace.json.gz", 2, 2)
        collectives = [event for event in wanted.operators() if event["name"].startswith("nccl:")]
        calls = collections.Counter(event["name"] for event in collectives)
        assert {row["name"]: row["calls"] for row in found["ops"][worker]} == calls
        sizes = collections.Counter()
        for event in collectives:
            for shape, kind in zip(event["args"]["Input Dims"], event["args"]["Input type"], strict=True):
                sizes[event["name"]] += math.prod(shape) * BYTES[kind]
        assert {row["name"]: row["total_bytes"] for row in found["ops"][worker]} == sizes
        step = found["overlap"]["2"][worker]
        busy = sum(event["dur"] for event in wanted.kernels if "nccl" not in event["name"])
        assert step["computation_only"] + step["overlap"] == busy
        assert sum(step.values()) == wanted.end - wanted.begin


def test_two_traces():
    folder = SYNTHETIC / "diff-pair"
    with serving(folder) as server:
        ids = {trace["worker"]: trace["id"] for trace in server.traces()}
        found = server.json(f"traces/{ids['exp']}/diff", base=ids["base"], steps=2)
    for side, worker in (("left", "base"), ("right", "exp")):
        wanted = Steps(folder / f"{worker}.pt.trace.json.gz", 2, 2)
        sums = sums_by_name(wanted.operators())
        operators = {row["name"]: row[side] for row in found["root_operators"] if row[side]}
        assert {name: [row["calls"], row["host_total"]] for name, row in operators.items()} == sums
        assert found["steps"][side]["steps"] == 1 and found["steps"][side]["mean"] == wanted.end - wanted.begin
