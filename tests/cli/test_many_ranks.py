# SPDX-License-Identifier: Apache-2.0
"""Runs of many ranks: how their traces are named to a command, and that they are not all held at once."""

import gzip
import json
import os
import pathlib
import re
import subprocess

import pages
import pytest
from installed import OPSTROBE

EVENTS = 20000
SHARED = os.environ.get("OPSTROBE_TRACES", pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "traces")
RANKS = pathlib.Path(SHARED) / "hta" / "dlrm_8rank"


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


def test_paths_of_a_directory_with_a_slash_have_one(opstrobe, tmp_path):
    (tmp_path / "job").mkdir()
    for rank in range(2):
        (tmp_path / "job" / f"r{rank}.json").write_text(trace(rank, 3))
    text = opstrobe("views", "job/").stdout
    assert "to see one rank: opstrobe job/r0.json\n" in text and "//" not in text
    long = tmp_path / ("a job with a name that is long " * 4)
    (tmp_path / "job").rename(long)
    assert f"to see one rank: opstrobe {long}/r0.json\n" in opstrobe("views", long).stdout, "a command is not broken"
    long.rename(tmp_path / "job")
    (tmp_path / "job" / "r1.json").write_text(trace(0, 3))  # the same rank twice is not a job
    text = opstrobe("views", "job/").stdout
    assert "--- job/r0.json ---" in text and "--- job/r1.json ---" in text and "//" not in text


@pytest.mark.skipif(
    not RANKS.exists(), reason=f"{RANKS} does not exist; OPSTROBE_TRACES names the folder of its folder"
)
def test_the_page_of_a_job_has_a_line_for_each_rank():
    text = subprocess.check_output([OPSTROBE, RANKS], text=True)
    run = json.loads(subprocess.check_output([OPSTROBE, "views", "--format", "json", RANKS]))
    together = run["distributed"]
    assert len(text.splitlines()) < 30
    assert text.startswith("8 ranks: 19,805 events in ") and "8 devices, 1 step each\n" in text
    for one in run["traces"]:
        line = next(line for line in text.splitlines() if line.startswith(one["worker"] + " "))
        wait = together["wait"]["all"][one["worker"]]["synchronizing"]
        overlap = together["overlap"]["all"][one["worker"]]
        talks = overlap["overlap"] + overlap["communication_only"]
        figures = re.findall(r"[\d.]+ (?:µs|ms|%)", line)
        busy = 100 * one["gpus"]["rows"][0]["utilization_ratio"] if "rows" in one["gpus"] else None
        assert pages.shows(figures[0], one["steps"]["median"])
        assert busy is None or pages.shows(figures[1], busy)
        assert pages.shows(figures[2], talks) and pages.shows(figures[3], wait)
        assert line.endswith(" late") == (one["worker"] == together["late_rank"]["all"]["worker"])
    late = together["late_rank"]["all"]
    waits = {name: wait["synchronizing"] for name, wait in together["wait"]["all"].items()}
    assert late["worker"] == min(waits, key=waits.get) == "rank-7"
    others = [wait for name, wait in waits.items() if name != "rank-7"]
    assert late["wait"] == pytest.approx(sum(others) / len(others) - waits["rank-7"])
    assert f"to see one rank: opstrobe {RANKS}/rank-7.json.gz\n" in text
    steps = {step: late for step, late in together["late_rank"].items() if step != "all" and late}
    worst = max(steps, key=lambda step: steps[step]["wait"])
    found = re.search(r"\nlongest in step (.*), for (.*): ([\d.]+ ms), mainly at nccl:all_to_all, ", text)
    assert found and found[1] == worst and found[2] == steps[worst]["worker"]  # as on the page of ranks
    assert pages.shows(found[3], steps[worst]["wait"])
    assert text.index("late rank: rank-7; ") < text.index("\nadvice\n1. ")


def zstd_frame(data):
    """The data in a frame of zstd, as they are."""
    header = b"\x28\xb5\x2f\xfd\x00\x58"  # no content size, a window of 2 MB
    return header + (len(data) << 3 | 1).to_bytes(3, "little") + data


def test_ranks_are_found_by_how_files_begin(tmp_path):
    """If no file has a name of torch's. Files made from a trace are left out next to those that have one."""
    about = json.dumps({"metadata": {"of": "x" * 30000}})[:-1] + ", "  # as in a file of HTA's
    (tmp_path / "first.json.gz").write_bytes(gzip.compress((about + trace(0, 3)[1:]).encode()))
    (tmp_path / "second.json.zst").write_bytes(zstd_frame(trace(1, 3).encode()))
    (tmp_path / "third.json").write_text(
        "[" + ", ".join(json.dumps(row) for row in json.loads(trace(2, 3))["traceEvents"])
    )
    (tmp_path / "odd.json.zst").write_bytes(zstd_frame(b'{"about": "no trace"}'))
    (tmp_path / "damaged.json.gz").write_bytes(b"\x1f\x8b" + bytes(40))
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    assert ranks_of(tmp_path) == [0, 1, 2]
    (tmp_path / "own.pt.trace.json").write_text(trace(5, 3))
    assert ranks_of(tmp_path) == [5]
    (tmp_path / "own.pt.trace.json").rename(tmp_path / "own.pt.trace.json.zst")
    (tmp_path / "own.pt.trace.json.zst").write_bytes(zstd_frame(trace(6, 3).encode()))
    assert ranks_of(tmp_path) == [6]


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


def test_a_rank_is_written_into_a_trace(opstrobe, tmp_path):
    """What else the file says of its process stays, and all events do."""
    document = json.loads(trace(4, 30))
    document["distributedInfo"] |= {"backend": "gloo", 'od"d': [1]}
    for name, info in ("with", document["distributedInfo"]), ("without", None):
        if info is None:
            del document["distributedInfo"]
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
        ended = opstrobe("convert", "--rank", "7", f"{name}.json", f"{name}_7.json.gz")
        assert ended.returncode == 0, ended.stderr
        with gzip.open(tmp_path / f"{name}_7.json.gz", "rt") as file:
            assert json.load(file)["distributedInfo"] == {**(info or {}), "rank": 7}
        asked = [opstrobe("analyze", "events", "--format", "csv", f) for f in (f"{name}.json", f"{name}_7.json.gz")]
        rows = [[line.split(",")[2:] for line in each.stdout.splitlines()] for each in asked]
        assert sorted(rows[0]) == sorted(rows[1]) and len(rows[0]) > 30
    found = json.loads(opstrobe("analyze", "discovery", "--format", "json", "with.json", "with_7.json.gz").stdout)
    assert found["value"] == {"4": "with.json", "7": "with_7.json.gz"}
    ended = opstrobe("convert", "--rank", "-1", "with.json", "no.json")
    assert (
        ended.returncode == 2
        and "invalid rank '-1': not a whole number" in ended.stderr
        and not (tmp_path / "no.json").exists()
    )
    ended = opstrobe("convert", "--rank", "18446744073709551615", "with.json", "no.json")
    assert ended.returncode == 1 and not (tmp_path / "no.json").exists()
