# SPDX-License-Identifier: Apache-2.0
"""The first finding is the same in text, Markdown and JSON, of one trace and of a run."""

import json
import pathlib
import shutil
import subprocess

from installed import OPSTROBE

TRACE = pathlib.Path(__file__).resolve().parents[2] / "web" / "tests" / "traces" / "train.pt.trace.json.gz"


def printed(*words):
    return subprocess.run([OPSTROBE, *map(str, words)], capture_output=True, text=True, check=True).stdout


def test_of_a_trace():
    views = json.loads(printed("views", "--format", "json", "--top-finding", TRACE))
    top = views.pop("top_finding")
    assert top == json.loads(printed("advise", "--format", "json", TRACE))["findings"][0]
    assert views == json.loads(printed("views", "--format", "json", TRACE))  # nothing else changes
    text = printed("views", TRACE)
    assert text[text.index("\nadvice\n") :].split("\n")[2].startswith(f"1. {top['title']}")
    markdown = printed("report", "--format", "markdown", TRACE)
    assert next(line for line in markdown.splitlines() if line.startswith("### 1. ")).startswith(
        f"### 1. {top['title']}"
    )


def test_of_a_run(tmp_path):
    for worker in ("one", "two"):
        shutil.copy(TRACE, tmp_path / f"{worker}.pt.trace.json.gz")
    run = json.loads(printed("views", "--format", "json", "--top-finding", tmp_path))
    assert len(run["traces"]) == 2
    assert run["top_finding"] == json.loads(printed("advise", "--format", "json", tmp_path))["findings"][0]


def test_none(tmp_path):
    path = tmp_path / "empty.json"
    path.write_text('{"traceEvents": []}')
    assert json.loads(printed("views", "--format", "json", "--top-finding", path))["top_finding"] is None


def test_text_has_it_already():
    done = subprocess.run([OPSTROBE, "views", "--top-finding", TRACE], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "opstrobe views: --top-finding requires --format json\n"
