# SPDX-License-Identifier: Apache-2.0
"""Runs of many ranks: how their traces are named to a command, and that they are not all held at once."""

import json
import os
import subprocess

import pytest
from installed import OPSTROBE

EVENTS = 20000


def trace(rank, events):
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": f"op {i % 50}", "pid": rank, "tid": 1, "ts": 10 * i, "dur": 5}
        for i in range(events)
    ]
    rows.append(
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10 * rank, "dur": 4, "args": {"stream": 7}}
    )
    return json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": rows})


def ranks_of(*words, **options):
    command = [OPSTROBE, "analyze", "temporal_breakdown", "--format", "json", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert ended.returncode == 0, ended.stderr
    return [row[0] for row in json.loads(ended.stdout)["table"]["rows"]]


def test_ranks_by_directories_patterns_and_standard_input(tmp_path):
    for rank in range(4):
        folder = tmp_path / ("odd" if rank % 2 else "even")
        folder.mkdir(exist_ok=True)
        (folder / f"trace{rank}.json").write_text(trace(rank, 3))
    (tmp_path / "odd" / "notes.json").write_text('{"about": "no trace"}')
    assert ranks_of("odd", "even", cwd=tmp_path) == [0, 1, 2, 3]
    assert ranks_of("odd", cwd=tmp_path) == [1, 3]
    assert ranks_of("*/trace[12].json", cwd=tmp_path) == [1, 2]
    with (tmp_path / "odd" / "trace3.json").open() as file:
        assert ranks_of("-", stdin=file) == [3]


@pytest.mark.parametrize(
    "command", [["views", "--format", "json"], ["advise", "--format", "json"]], ids=lambda words: words[0]
)
def test_ranks_are_read_one_after_the_other(tmp_path, command):
    """Four times the ranks take little more memory."""
    peaks = []
    for count in 5, 20:
        folder = tmp_path / str(count)
        folder.mkdir()
        for rank in range(count):
            (folder / f"worker_{rank}.pt.trace.json").write_text(trace(rank, EVENTS))
        process = subprocess.Popen([OPSTROBE, *command, folder], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < 1.4 * peaks[0], peaks
