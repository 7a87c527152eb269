# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run` measures the roof of this machine once, after the recording, and only where nobody waits for it."""

import json
import shutil
import signal
import subprocess
import textwrap

import pytest
import torch
from installed import OPSTROBE

from opstrobe.recording import bridge

MEASURES = "measuring once"
PROGRAM = """
    import os, signal, sys
    import torch

    torch.set_default_dtype(torch.float64)  # of this process only
    torch.ones(64, 64) @ torch.ones(64, 64)
    if "fails" in sys.argv:
        raise ValueError("no")
    if "is_killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.fixture
def environment(environment, tmp_path):
    environment.pop("OPSTROBE_ROOF")
    return {**environment, "XDG_CACHE_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def program(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    if bridge.cache_directory().exists():  # compiling another one takes long
        shutil.copytree(bridge.cache_directory(), tmp_path / "cache" / "opstrobe" / "bridge")


def roof_of(path):
    return json.loads(path.read_text()).get("roof")


def test_the_first_recording_with_shapes_measures(opstrobe, tmp_path):
    process = opstrobe("run", "--record-shapes", "-o", "trace.json", "program.py")
    assert process.returncode == 0 and process.stderr.count(MEASURES) == 1, process.stderr
    assert "child process" not in process.stderr
    roof = roof_of(tmp_path / "trace.json")
    assert roof["threads"] == 1 and roof["torch"] == str(torch.__version__)
    assert set(roof["flops"]) == {"float32", "float64", "bfloat16", "float16"} and len(roof["bandwidth"]) == 8
    (kept,) = (tmp_path / "cache" / "opstrobe" / "roof").iterdir()
    assert json.loads(kept.read_text()) == roof
    # What the measurement computed is not in the trace.
    names = [event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]
    assert names.count("aten::mm") == 1

    kept.write_text(json.dumps({**roof, "waited_for_cpu": 0.0}))
    process = opstrobe("run", "--flops", "-o", "second.json", "program.py")
    assert MEASURES not in process.stderr
    assert roof_of(tmp_path / "second.json") == {**roof, "waited_for_cpu": 0.0}


@pytest.mark.parametrize(
    ("variables", "options", "argument"),
    [
        ({"OPSTROBE_ROOF": "0"}, ["--record-shapes"], ""),
        ({}, [], ""),
        ({"RANK": "1", "WORLD_SIZE": "2"}, ["--record-shapes"], ""),
        ({}, ["--record-shapes"], "fails"),
        ({}, ["--record-shapes"], "is_killed"),
    ],
    ids=["off", "no_shapes", "rank_1", "failed", "killed"],
)
def test_others_do_not(opstrobe, environment, tmp_path, variables, options, argument):
    words = ["run", *options, "-o", "trace.json", "program.py", argument]
    process = opstrobe(*words, env={**environment, **variables})
    assert MEASURES not in process.stderr and "wrote trace" in process.stderr, process.stderr
    assert roof_of(next(tmp_path.glob("trace*.json"))) is None


def test_a_signal_ends_the_measurement_and_the_trace_is_written(environment, tmp_path):
    process = subprocess.Popen(
        [OPSTROBE, "run", "--record-shapes", "-o", "trace.json", "program.py"],
        cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stderr:
        if MEASURES in line:
            process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == -signal.SIGTERM
    assert roof_of(tmp_path / "trace.json") is None
