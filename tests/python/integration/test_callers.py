# SPDX-License-Identifier: Apache-2.0
"""Well-known callers of torch.profiler see the same with OPSTROBE_PATCH=1 as with torch's own."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import caller_programs  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="compares with torch 2.13")

# The number of a Python thread. The row's `tid` identifies the thread already.
LEFT_OUT = {"Python thread"}


def torch_misread(facts):
    return any((seen["error"] or "").startswith("UnicodeDecodeError") for seen in facts.values())


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """What all callers saw: under torch, under Opstrobe."""

    def run(patch):
        out = tmp_path_factory.mktemp("callers")
        environment = {**os.environ, "OPSTROBE_PATCH": patch, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, caller_programs.__file__, str(out)]
        done = subprocess.run(command, env=environment, cwd=out, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return json.loads((out / "facts.json").read_text())

    # Rarely, torch's own profiler raises UnicodeDecodeError for a name that it reads itself.
    theirs = next((seen for seen in (run("") for _ in range(3)) if not torch_misread(seen)), None)
    assert theirs is not None, "torch failed to decode its own names three times"
    return theirs, run("1")


def is_trace(fact):
    return isinstance(fact, dict) and "names" in fact


@pytest.mark.parametrize("name", caller_programs.CALLERS)
def test_caller(facts, name):
    theirs, ours = (dict(each[name]) for each in facts)
    assert theirs["error"] is None
    files, our_files = theirs.pop("files"), ours.pop("files")
    assert ours == theirs
    assert our_files.keys() == files.keys()
    for file, fact in files.items():
        mine = our_files[file]
        if not is_trace(fact):
            assert mine == fact, file
            continue
        assert set(fact["keys"]) <= set(mine["keys"]), file
        assert fact["args"].keys() <= mine["args"].keys(), file
        for category, names in fact["args"].items():
            assert set(names) - LEFT_OUT <= set(mine["args"][category]), (file, category)
        for what in ("steps", "memory", "modules", "names"):
            assert mine[what] == fact[what], (file, what)


def test_callers_were_replaced(facts):
    """Each that writes traces wrote them by Opstrobe, so that the comparison is one."""
    for name, seen in facts[1].items():
        traces = [fact for fact in seen["files"].values() if is_trace(fact)]
        assert traces or name == "vllm_layerwise", name
        assert all("opstrobe" in fact["keys"] for fact in traces), name
    assert not any(
        "opstrobe" in fact["keys"] for each in facts[0].values() for fact in each["files"].values() if is_trace(fact)
    )
