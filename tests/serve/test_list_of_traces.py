# SPDX-License-Identifier: Apache-2.0
"""The list of traces: which are of one job, what it shows of each, and that it is made without keeping the traces."""

import json
import time

import pytest
from conftest import TIMEOUT_S, serving
from test_http_api import check, command


def trace(start_ms, rank=None, world_size=2, job=None, extra=0):
    """Two steps with an operator each; `extra` more operators."""
    rows = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
         "ts": start_ms * 1000 + 10_000 * step, "dur": 10_000}
        for step in (1, 2)
    ]  # fmt: skip
    rows += [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": row["ts"] + 10 + i, "dur": 1}
        for row in list(rows)
        for i in range(1 + extra)
    ]
    members = {"recording": {"command": "python train.py"}, "traceEvents": rows}
    if rank is not None:
        members["distributedInfo"] = {"rank": rank, "world_size": world_size}
    if job is not None:
        members["job"] = job
    return json.dumps(members)


def wait_for_summaries(server, which="all"):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        listed = check(server.json("traces", summaries=which), "/traces")["traces"]
        if which != "all" or all(each["summary"] or each["state"] == "failed" for each in listed):
            return {each["name"]: each for each in listed}
        time.sleep(0.05)
    raise AssertionError("summaries are missing")


@pytest.fixture
def folder(tmp_path):
    names = {
        "a0.pt.trace.json": trace(0, 0), "a1.pt.trace.json": trace(5, 1),
        "later0.pt.trace.json": trace(90_000, 0), "later1.pt.trace.json": trace(90_001, 1),
        "wide3.pt.trace.json": trace(0, 3, 8), "single.pt.trace.json": trace(0), "one.pt.trace.json": trace(0, 0, 1),
    }  # fmt: skip
    for name, text in names.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bad.pt.trace.json").write_text("[7 8]")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b0.pt.trace.json").write_text(trace(0, 0))
    (tmp_path / "other" / "b1.pt.trace.json").write_text(trace(0, 1, job="x"))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c0.pt.trace.json").write_text(trace(0, 0, job="x"))
    return tmp_path


def test_ranks_of_one_job(folder):
    with serving(folder) as server:
        traces = wait_for_summaries(server)
    groups = {}
    for name, each in traces.items():
        groups.setdefault(each["job"] or name, set()).add(name.split(".")[0])
    assert {frozenset(group) for group in groups.values() if len(group) > 1} == {
        frozenset({"a0", "a1"}), frozenset({"later0", "later1"}), frozenset({"b1", "c0"}),
    }  # fmt: skip
    assert traces["bad.pt.trace.json"]["job"] is None and traces["bad.pt.trace.json"]["state"] == "failed"


def test_what_the_list_shows_is_what_the_commands_print(folder):
    with serving(folder) as server:
        traces = wait_for_summaries(server)
        for each in traces.values():
            if each["state"] == "failed":
                continue
            summary, path = each["summary"], each["path"]
            info = command("info", "--format", "json", path)["value"]
            views = command("views", "--format", "json", "--top-finding", path)
            assert summary["start_ns"] == info["start_ns"] and summary["duration_us"] == info["duration_us"]
            assert summary["steps"] == {
                "from": "marks",
                "count": len(views["steps"]["rows"]),
                "median": views["steps"]["median"],
            }
            assert summary["rank"] == info["rank"] == each["rank"]
            assert summary["command"] == "python train.py"
            top = views["top_finding"]
            assert (summary["top_finding"] or {}).get("title") == (top or {}).get("title")
            assert server.json(f"traces/{each['id']}/views", parts="top_finding") == {"top_finding": top}
            assert server.json(f"traces/{each['id']}/summary") == summary
        assert {each["state"] for each in server.traces()} == {"ready", "failed"}


def test_traces_of_the_list_are_not_kept(folder):
    with serving(folder) as server:
        before = server.traces()
        assert {(each["state"], each["job"], each["summary"]) for each in before} == {("listed", None, None)}
        traces = wait_for_summaries(server)
        assert {each["state"] for each in traces.values()} == {"listed", "failed"}
        assert all(each["summary"] is None for each in server.traces())  # not requested


def test_only_the_directory_of_a_trace(folder):
    with serving(folder) as server:
        name = "c0.pt.trace.json"
        identity = next(each["id"] for each in server.traces() if each["name"] == name)
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline and not wait_for_summaries(server, identity)[name]["summary"]:
            time.sleep(0.05)
        known = wait_for_summaries(server, "known")
        assert {each["name"] for each in known.values() if each["summary"]} == {name}


def test_a_thousand_traces(tmp_path):
    """The list answers while summaries are made, and all of them come."""
    for i in range(1000):
        (tmp_path / f"t{i:04}.pt.trace.json").write_text(trace(i, i % 8, 8, extra=3))
    with serving(tmp_path) as server:
        assert len(server.json("traces", summaries="all")["traces"]) == 1000
        identity = server.traces()[500]["id"]
        assert server.json(f"traces/{identity}/info")["value"]["steps"] == 2
        traces = wait_for_summaries(server)
        jobs = {}
        for each in traces.values():
            jobs.setdefault(each["job"], []).append(each["rank"])
        assert sorted(map(sorted, jobs.values())) == [list(range(8))] * 125


def test_the_listing_ends_with_the_server(folder):
    for i in range(50):
        (folder / f"more{i}.pt.trace.json").write_text(trace(i, extra=2000))
    with serving(folder) as server:
        server.json("traces", summaries="all")
        code, errors = server.stop()
        assert code == 0, errors


def test_a_trace_whose_metadata_is_long(tmp_path):
    """The samples of stacks come before the events in Opstrobe's files, whatever these are called."""
    long = {"schemaVersion": 1, "python_samples_of_another": ["train.py(3)"] * 10_000}
    (tmp_path / "gan.json").write_text(json.dumps(long | json.loads(trace(0))))
    (tmp_path / "manifest.json").write_text(json.dumps({"schemaVersion": 2, "layers": []}))
    (tmp_path / "long.json").write_text(json.dumps({"layers": ["layer"] * 10_000}))
    with serving(tmp_path) as server:
        assert [each["name"] for each in server.json("traces")["traces"]] == ["gan.json"]
