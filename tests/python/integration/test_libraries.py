# SPDX-License-Identifier: Apache-2.0
"""Libraries that profile with torch.profiler, run as they are with Opstrobe in its place."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from judged import cuts, drops

HERE = Path(__file__).parent
PATCHED = """
import runpy, sys
import opstrobe
opstrobe.patch_torch()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program with a folder to write to, under `opstrobe.patch_torch()`; the folder."""

    def run(program):
        command = [sys.executable, "-W", "always", "-c", PATCHED, str(HERE / program), str(tmp_path)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        ours = [line for line in done.stderr.splitlines() if "/opstrobe/" in line and "Warning" in line]
        assert not ours, done.stderr
        return tmp_path

    return run


def rows_of(path):
    document = json.loads(path.read_text())
    assert "opstrobe" in json.dumps({k: v for k, v in document.items() if k != "traceEvents"}).lower(), "torch wrote it"
    return document["traceEvents"]


def names_of(path):
    return {row["name"] for row in rows_of(path)}


def test_lightning(run, perfetto):
    folder = run("lightning_program.py")
    report = (folder / "fit-profile.txt").read_text()
    assert "aten::addmm" in report and "[pl][profile]" in report and "[pl][module]" in report, report
    traces = sorted(folder.glob("*.pt.trace.json"))
    assert traces
    for trace in traces:
        # Lightning calls step() in the middle of a batch, so that its ranges begin in one step and end in the next.
        found = cuts(rows_of(trace))
        assert all(cut.startswith("ProfilerStep#") for _, cut in found), found
        assert perfetto(trace) == drops(found)
    assert any("ProfilerStep#2" in names_of(trace) for trace in traces)


def test_accelerate(run, perfetto):
    folder = run("accelerate_program.py")
    tables = (folder / "tables.txt").read_text()
    assert tables.count("aten::addmm") >= 3 and "Optimizer.step#AdamW.step" in tables
    traces = [folder / "cycle1.json", folder / "cycle2.json", *(folder / "out").iterdir()]
    assert len(traces) == 3
    for trace in traces:
        assert perfetto(trace) == {}
        assert "AddmmBackward0" in names_of(trace)
    assert "ProfilerStep#3" in names_of(traces[0]) and "ProfilerStep#7" in names_of(traces[1])


def test_transformers(run, perfetto):
    folder = run("transformers_program.py")
    for name, operator in (("gpt2", "aten::scaled_dot_product_attention"), ("bert", "aten::gelu")):
        assert "aten::" in (folder / f"{name}.txt").read_text()
        assert perfetto(folder / f"{name}.json") == {}
        names = names_of(folder / f"{name}.json")
        assert {operator, "ProfilerStep#2", "ProfilerStep#3", "Optimizer.step#AdamW.step"} <= names, sorted(names)
        stacks = (folder / f"{name}.stacks").read_text().splitlines()
        assert any("forward" in line and "aten::" in line for line in stacks), stacks[:3]
