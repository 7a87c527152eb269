# SPDX-License-Identifier: Apache-2.0
"""Defects of torch's profiler that no other file tests. docs/compatibility.md lists all defects, D1 to D35."""

import cProfile
import gzip
import json
import os
import subprocess
import sys

import pytest

import opstrobe
from opstrobe import record_function

torch = pytest.importorskip("torch")


def work():
    with record_function("range"):
        return torch.ones(100) + 1


def test_d3_d31_a_hostile_file_name_keeps_the_json_valid(tmp_path):
    source = "def called():\n    return len([])\n\n\ndef caller():\n    return called()\n"
    scope = {}
    exec(compile(source, 'qu"ote\ttab\\slash.py', "exec"), scope)
    with opstrobe.profile(with_stack=True) as prof:
        scope["caller"]()
    path = tmp_path / "t.json"
    prof.export_chrome_trace(path)
    rows = json.loads(path.read_text())["traceEvents"]
    (called,) = (row for row in rows if row["name"].endswith(": called"))
    assert called["args"]["CallFrom"] == 'qu"ote\ttab\\slash.py:6'


@pytest.mark.parametrize("label", ["rf", "Pi", "_Z3foov"])
def test_d5_labels_are_not_demangled(label):
    with opstrobe.profile() as prof, record_function(label):
        pass
    assert [e.name for e in prof.events()] == [label]
    assert label in prof.key_averages().table()


def test_d12_table_of_events_with_flops_and_memory():
    torch.ones(3)
    with opstrobe.profile(with_flops=True, profile_memory=True) as prof:
        kept = torch.ones(100) @ torch.ones(100)
        del kept
    assert any(e.name == "[memory]" for e in prof.events())
    assert "[memory]" in prof.events().table(row_limit=-1)


def test_d15_memory_of_all_threads():
    import threading

    config = opstrobe._ExperimentalConfig(profile_all_threads=True)
    with opstrobe.profile(profile_memory=True, experimental_config=config) as prof:
        thread = threading.Thread(target=lambda: torch.empty(1 << 20, dtype=torch.uint8))
        thread.start()
        thread.join()
    (empty,) = (e for e in prof.events() if e.name == "aten::empty")
    assert empty.cpu_memory_usage == 1 << 20


def test_d17_a_profiler_of_the_users_own_goes_on():
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        work()
        with opstrobe.profile(with_stack=True) as prof:
            work()
        work()
    finally:
        profiler.disable()
    calls = {entry.code.co_name: entry.callcount for entry in profiler.getstats() if hasattr(entry.code, "co_name")}
    assert calls["work"] == 3
    assert any(e.name.endswith(": work") for e in prof.events())


@pytest.mark.parametrize("with_stack", [True, False])
def test_d23_ids_are_unique_and_the_cpu_has_no_index(with_stack):
    with opstrobe.profile(with_stack=with_stack, profile_memory=True) as prof:
        kept = [work(), work(), work()]
        del kept
    if not with_stack:  # those inside a function are its own
        assert sum(e.name == "[memory]" for e in prof.events()) >= 3
    ids = [e.id for e in prof.events()]
    assert len(set(ids)) == len(ids)
    assert {e.device_index for e in prof.events()} == {-1}


def test_d24_nothing_on_standard_error():
    code = (
        "import torch, opstrobe\n"
        "for options in ({}, dict(with_stack=True), dict(profile_memory=True, record_shapes=True)):\n"
        "    with opstrobe.profile(**options) as prof:\n"
        "        torch.ones(1)\n"
        "        prof.toggle_collection_dynamic(False, [opstrobe.ProfilerActivity.CPU])\n"
        "        prof.toggle_collection_dynamic(True, [opstrobe.ProfilerActivity.CPU])\n"
        "    prof.toggle_collection_dynamic(False, [opstrobe.ProfilerActivity.CPU])\n"
        "    prof.key_averages().table()\n"
    )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_d25_the_trace_knows_its_own_name(tmp_path):
    with opstrobe.profile() as prof:
        work()
    path = tmp_path / "t.json.gz"
    prof.export_chrome_trace(path)
    assert json.loads(gzip.decompress(path.read_bytes()))["traceName"] == str(path)


def test_d27_one_exporter_says_everything(tmp_path):
    with opstrobe.profile(profile_memory=True) as prof:
        work()
    documents = []
    for python in (False, True):
        prof.export_chrome_trace(tmp_path / "t.json", use_python_export=python)
        documents.append(json.loads((tmp_path / "t.json").read_text()))
    assert documents[0] == documents[1]
    assert {"trace_id", "host_name"} <= documents[0].keys()
    assert {row["ph"] for row in documents[0]["traceEvents"] if row["name"] == "[memory]"} == {"i"}


def test_d32_without_python_functions_percentages_stay_below_100():
    with opstrobe.profile(with_stack=True) as prof:
        with record_function("range"):
            for _ in range(20):
                sorted(range(5000), key=lambda i: -i)
                torch.ones(10) + 1
    with_them = prof.key_averages()
    without = prof.key_averages(include_python_functions=False)
    assert any(row.key.endswith("<lambda>") for row in with_them)
    assert {row.key for row in with_them if "aten" in row.key} | {"range"} == {row.key for row in without}
    (outer,) = (row for row in without if row.key == "range")
    assert sum(row.self_cpu_time_total for row in without) == pytest.approx(outer.cpu_time_total, rel=1e-6)
    table = without.table()
    assert all(
        float(word[:-1]) <= 100 for word in table.split() if word.endswith("%") and word[:-1].replace(".", "").isdigit()
    )
    by_stack = prof.key_averages(group_by_stack_n=1, include_python_functions=False)
    assert {row.key for row in by_stack} == {row.key for row in without}
    assert all(row.stack for row in by_stack)


def test_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PT_PROFILER_JOB_NAME", 'a "job"')
    monkeypatch.setenv("PT_PROFILER_JOB_VERSION", "7\\8")
    with opstrobe.profile() as prof:
        work()
    prof.export_chrome_trace(tmp_path / "t.json")
    document = json.loads((tmp_path / "t.json").read_text())
    assert (document["PT_PROFILER_JOB_NAME"], document["PT_PROFILER_JOB_VERSION"]) == ('a "job"', "7\\8")
    assert "PT_PROFILER_JOB_ATTEMPT_INDEX" not in document
    assert os.listdir(tmp_path) == ["t.json"]
