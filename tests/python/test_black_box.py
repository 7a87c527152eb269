# SPDX-License-Identifier: Apache-2.0
"""The black box: what programs did last, from inside, from outside and after they were killed."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opstrobe
from opstrobe import _core
from opstrobe.recording.black_box import parse_bytes

torch = pytest.importorskip("torch")

COMMAND = os.path.join(sysconfig.get_path("scripts"), "opstrobe")

# Trains, says so, and then holds Python's lock in a C function until it is killed, or ends.
PROGRAM = """
import ctypes, sys
import torch

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
print("trained", flush=True)
if sys.argv[1] == "hang":
    with torch.profiler.record_function("hangs"):
        ctypes.PyDLL(None).pause()
"""


def start(program: Path, how: str, folder: Path, *command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPSTROBE_BLACK_BOX_DIR": str(folder)}
    if not command:
        environment["OPSTROBE_BLACK_BOX"] = "1"
    process = subprocess.Popen(
        [*(command or [sys.executable]), str(program), how], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "trained\n"
    return process


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def names(trace: opstrobe.TraceFile) -> list[str]:
    return [event.name for event in trace.events()]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("command", [[], [COMMAND, "run", "--black-box"]], ids=["variable", "run"])
def test_dump_of_a_program_that_holds_the_lock(program: Path, tmp_path: Path, command: list[str]) -> None:
    folder, output = tmp_path / "box", tmp_path / "last.json.gz"
    process = start(program, "hang", folder, *command)
    try:
        found: set[str] = set()
        while "hangs" not in found:  # the program has yet to begin the range after it has said that it is trained
            done = run("dump", process.pid, "-o", output)
            assert done.returncode == 0, done.stderr
            trace = opstrobe.TraceFile(output, opstrobe._core.read_trace(str(output)))
            found = set(names(trace))
        assert {"aten::linear", "Optimizer.step#SGD.step"} <= found
        assert b"ProfilerStep#18" in gzip.decompress(output.read_bytes())
        assert trace.trace.has_memory
        time.sleep(0.2)
        done = run("dump", "--last", "50ms", process.pid, "-o", output)
        assert re.search(r", [\d.]+ m?s of them after its last event", done.stderr)
        done = run("dump", process.pid, "-o", tmp_path / "last.oprec")
        assert done.returncode == 0, done.stderr
        copied = opstrobe.TraceFile(output, opstrobe._core.read_trace(str(tmp_path / "last.oprec")))
        assert "hangs" in names(copied)
        assert copied.trace.has_memory
    finally:
        process.kill()
        process.wait()


def test_a_large_recording_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, converted = tmp_path / "train.py", tmp_path / "last.json"
    program.write_text(PROGRAM.replace("print(", "for _ in range(250_000):\n    torch.empty(1)\nprint("))
    monkeypatch.setenv("OPSTROBE_BLACK_BOX_BUDGET", "0")
    monkeypatch.setenv("OPSTROBE_BLACK_BOX_BYTES", "48MB")
    process = start(program, "hang", tmp_path / "box")
    try:
        done = run("dump", process.pid, "-o", f"{tmp_path}/")
        copy = tmp_path / f"train.{process.pid}.oprec"
        assert f"wrote {copy}: " in done.stderr, done.stderr
        assert run("dump", "--last", "1s", process.pid, "-o", copy).returncode == 2
    finally:
        process.kill()
        process.wait()
    assert str(copy) in run("info", tmp_path).stdout
    assert run("convert", copy, converted).returncode == 0
    for path in copy, converted:
        trace = opstrobe.TraceFile(path, opstrobe._core.read_trace(str(path)))
        assert names(trace).count("aten::empty") >= 250_000
        assert {"aten::linear", "Optimizer.step#SGD.step"} <= set(names(trace))


def test_recovery_of_a_program_that_was_killed(program: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "box", tmp_path / "last.json.gz"
    process = start(program, "hang", folder)
    process.kill()
    process.wait()
    assert os.stat(folder).st_mode & 0o777 == 0o700
    done = run("recover", folder, "-o", output)
    assert done.returncode == 0, done.stderr
    assert "aten::linear" in names(opstrobe.TraceFile(output, opstrobe._core.read_trace(str(output))))


def test_nothing_remains_of_a_program_that_ends(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "box"
    process = start(program, "end", folder)
    assert process.wait() == 0
    assert list(folder.iterdir()) == []


def test_old_recordings_do_not_fill_the_memory(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "box"
    folder.mkdir(mode=0o700)
    for number in range(6):
        path = folder / f"train.99999999{number}.1.oprec"
        path.write_bytes(b"")
        os.utime(path, (number, number))
    assert start(program, "end", folder).wait() == 0
    assert sorted(path.name[8 + 6] for path in folder.iterdir()) == ["2", "3", "4", "5"]


def test_what_is_dumped_must_record(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        done = run("dump", process.pid)
        assert (done.returncode, "does not record" in done.stderr) == (1, True)
    finally:
        process.kill()
        process.wait()
    done = run("dump", process.pid)
    assert (done.returncode, "does not exist" in done.stderr) == (1, True)
    assert run("dump").returncode == 2
    assert run("dump", "--all", "1").returncode == 2
    assert run("dump", "x").returncode == 2


def test_dump_of_all(program: Path, tmp_path: Path) -> None:
    process = start(program, "hang", tmp_path / "box")
    try:
        done = run("dump", "--all", "-o", f"{tmp_path / 'dumps'}/")
        assert (
            f"wrote {tmp_path / 'dumps'}/train.{process.pid}.pt.trace.json.gz: " in done.stderr
        )  # the name of the program
        assert (tmp_path / "dumps" / f"train.{process.pid}.pt.trace.json.gz").exists()
    finally:
        process.kill()
        process.wait()


def test_other_options_of_run(program: Path) -> None:
    done = run("run", "--black-box", "--memory", program, "end")
    assert (done.returncode, done.stderr) == (
        2,
        "opstrobe run: --memory does not go with --black-box; see 'opstrobe run --help'\n",
    )


def test_in_a_program(tmp_path: Path) -> None:
    box = opstrobe.black_box(seconds=30, max_bytes="16MB", spill=tmp_path)
    with pytest.raises(RuntimeError, match="does not record"):
        box.snapshot()
    with box:
        kept = torch.ones(1000) * 2
        with opstrobe.record_function("open"):
            trace = box.snapshot()
        with pytest.raises(RuntimeError):
            box.start()
        assert {"aten::mul", "open"} <= set(names(trace))
        assert sorted(path.suffix for path in tmp_path.iterdir()) == [".oprec", ".opwatch"]
    assert len(kept) == 1000
    assert list(tmp_path.iterdir()) == []
    assert box.path is None
    with opstrobe.profile() as profile:  # records as ever
        torch.ones(2)
    assert "aten::ones" in [event.name for event in profile.events()]


def test_the_oldest_is_dropped_and_live_bytes_are_right() -> None:
    with opstrobe.black_box(max_bytes="4MB") as box:
        kept = [torch.empty(1000, dtype=torch.uint8) for _ in range(10)]
        for _ in range(60000):
            torch.empty(100)
        snapshot = box.snapshot()
    assert snapshot.trace.lost == 0
    assert '"dropped": 0' not in snapshot.metadata["recovered"]
    assert 0 < len(snapshot.trace.function_events()) < 60000
    del kept


SHADOW = "Opstrobe: shadow step"


def train(steps: int, each: Callable[[], object] = object) -> None:
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(4, 8)).sum().backward()
        each()
        optimizer.step()


def measured(box: opstrobe.black_box) -> dict[str, Any]:
    """The figures on the overhead, which the box writes once a second."""
    for _ in range(200):
        train(300)
        box_of: dict[str, Any] = json.loads(box.snapshot(seconds=0.01).metadata.get("black_box", '{"overhead": null}'))
        if box_of["overhead"] is not None:
            return box_of
    pytest.fail("60,000 steps, and no figure on the overhead")


def test_shadow_steps_have_no_operators_and_are_marked() -> None:
    with opstrobe.black_box(budget=0) as box:
        train(300)
        events = box.snapshot().events()
    shadows = [event.time_range for event in events if event.name == SHADOW]
    steps = [event.time_range for event in events if event.name.startswith("ProfilerStep")]
    operators = [event.time_range.start for event in events if event.name == "aten::linear"]
    assert 5 <= len(shadows) <= 300 / 4
    assert all(any(step.start <= shadow.start and shadow.end <= step.end for step in steps) for shadow in shadows)
    in_shadow = [start for start in operators if any(shadow.start < start < shadow.end for shadow in shadows)]
    assert in_shadow == []
    assert len(operators) + len(shadows) >= 299
    assert opstrobe.black_box(budget="0.5%").budget == 0.005


def test_what_shadow_steps_record_of_memory(tmp_path: Path) -> None:
    """No allocations, so that their overhead is measured, and the frees of all that was allocated before."""
    kept: list[torch.Tensor] = []
    with opstrobe.black_box(budget=0) as box:
        kept.extend(torch.empty(1000, dtype=torch.uint8) for _ in range(300))
        before = len(kept)

        def exchange() -> None:
            kept.pop(0)
            kept.append(torch.empty(2000, dtype=torch.uint8))

        train(200, exchange)
        kept.clear()
        trace = box.snapshot()
    trace.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    shadow_steps = sum(event["name"] == SHADOW for event in events)
    usage = [event["args"]["Bytes"] for event in events if event["name"] == "[memory]"]
    assert usage.count(1000) == before
    assert usage.count(-1000) == before
    assert usage.count(2000) == usage.count(-2000)
    assert shadow_steps > 5
    assert usage.count(2000) == 200 - shadow_steps


def test_the_overhead_is_measured_and_detail_goes_beyond_the_budget() -> None:
    with opstrobe.black_box(max_bytes="2MB", budget=0) as box:
        found = measured(box)
        assert found["detail"] == "operators"
        assert found["overhead"]["low"] <= found["overhead"]["share"] <= found["overhead"]["high"]
        assert found["overhead"]["shadow_steps"] >= 8
    with opstrobe.black_box(max_bytes="2MB", budget=1e-6) as box:
        # Each level of detail is measured for a second or more, and restored where it seems to cost nothing.
        for _ in range(500):
            found = measured(box)
            if found["detail"] != "steps":
                continue
            kept = torch.empty(2_000_000, dtype=torch.uint8)
            train(3000)  # marked in groups of up to 10 ms
            assert _core.watch_group() > 1
            snapshot = box.snapshot()
            if measured(box)["detail"] == "steps":
                break
        assert found["detail"] == "steps"  # recording anything of so small a model takes much more than the budget
        assert found["exceeded"] > found["budget"] == 1e-6
    last = [event.name for event in snapshot.events()][-20:]
    assert set(last) <= {"ProfilerStep*", SHADOW, "Python GC"}
    assert not any(event.self_cpu_memory_usage == 2_000_000 for event in snapshot.events())
    del kept


def test_a_program_without_steps_is_measured_by_its_calls_of_the_model() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8)).eval()
    inputs = torch.randn(4, 8)
    with torch.no_grad(), opstrobe.black_box(max_bytes="2MB", budget=1e-6) as box:
        for _ in range(200):
            for _ in range(3000):
                model(inputs)
            snapshot = box.snapshot(seconds=0.05)
            found = json.loads(snapshot.metadata.get("black_box", '{"exceeded": null}'))
            if found["exceeded"] is not None:
                break
    assert found["unit"] == "call"
    assert found["exceeded"] > 1e-6
    assert found["detail"] != "operators"
    shadows = [event.time_range for event in snapshot.events() if event.name == SHADOW]
    operators = [event.time_range.start for event in snapshot.events() if event.name == "aten::linear"]
    assert not any(shadow.start < start < shadow.end for start in operators for shadow in shadows)


@pytest.mark.parametrize("budget", ["", "much", "2", -0.1, "101%"])
def test_invalid_budgets(budget: str | float) -> None:
    with pytest.raises(ValueError, match="budget"):
        opstrobe.black_box(budget=budget)


# --- sampled stacks --------------------------------------------------------------------------------------------------


def stacks_of(trace: Path) -> str:
    output = trace.with_suffix(".folded.txt")
    done = run("convert", "--metric", "sampled", trace, output)
    assert done.returncode == 0, done.stderr
    return output.read_text()


def test_stacks_of_a_program_that_holds_the_lock(program: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "box", tmp_path / "last.json.gz"
    process = start(program, "hang", folder, COMMAND, "run", "--black-box", "--sample-ms", "5")
    line = f"train.py({PROGRAM.count(chr(10), 0, PROGRAM.index('pause')) + 1}):_<module>"
    try:
        stacks = ""
        while line not in stacks:  # a program that holds the lock is still to be sampled
            assert run("dump", process.pid, "-o", output).returncode == 0
            stacks = stacks_of(output)
        assert "MainThread;" in stacks
    finally:
        process.kill()
        process.wait()
    assert run("recover", folder, "-o", output).returncode == 0
    assert line in stacks_of(output)


def test_stacks_of_a_thread(tmp_path: Path) -> None:
    done = threading.Event()

    def waits_for_the_test() -> None:
        done.wait()

    thread = threading.Thread(target=waits_for_the_test)
    with opstrobe.black_box(spill=tmp_path, sample_ms=2) as box:
        thread.start()
        states: set[str] = set()
        while "lock" not in states:  # the first sample may be of the thread's start
            found = json.loads(box.snapshot().trace.metadata().get("python_samples", '{"threads": []}'))
            samples = [each["samples"] for each in found["threads"] if each["tid"] == thread.native_id]
            states = {found["states"][state] for state in sum(samples, [])[3::4] if state < len(found["states"])}
        done.set()
        thread.join()
    assert "waits_for_the_test" in str(found)
    assert all(weight > 0 for weight in samples[0][1::4])


def test_stacks_are_not_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opstrobe.black_box(spill=tmp_path, sample_ms=0) as box:
        assert "python_samples" not in box.snapshot().trace.metadata()
    monkeypatch.setattr(opstrobe._core, "stack_sampler_start", lambda *_: "frames are not where they are expected")
    with pytest.warns(UserWarning, match="Python stacks are not sampled: frames are not where they are expected"):
        with opstrobe.black_box(spill=tmp_path) as box:
            assert "python_samples" not in box.snapshot().trace.metadata()


@pytest.mark.parametrize("sample_ms", [-1, 0.5, 60_001, "often", float("nan")])
def test_invalid_sample_ms(sample_ms: float | str) -> None:
    with pytest.raises(ValueError, match="sample_ms must be a number of milliseconds from 1 to 60000, or 0"):
        opstrobe.black_box(sample_ms=sample_ms)


def test_steps_are_marked_again_after_a_stop() -> None:
    box = opstrobe.black_box(budget=0)
    for _ in range(2):
        with box:
            train(5)
            assert any(name.startswith("ProfilerStep") for name in names(box.snapshot()))


def test_steps_of_optimizers_from_before_the_box() -> None:
    code = """
import torch, opstrobe
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
def step():
    (weight * 2).sum().backward()
    optimizer.step()
step()
with opstrobe.black_box(budget=0) as box:
    for _ in range(4):
        step()
    print(sum(event.name.startswith("ProfilerStep") for event in box.snapshot().events()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "3\n", done.stderr


def test_garbage_collections() -> None:
    import gc

    with opstrobe.black_box() as box:
        gc.collect()
        assert "Python GC" in names(box.snapshot())


def test_snapshot_of_a_profile(tmp_path: Path) -> None:
    with opstrobe.profile(spill=tmp_path) as profile:
        torch.ones(3)
        assert "aten::ones" in names(profile.snapshot())
        assert "aten::ones" in names(profile.snapshot(seconds=3600))
        with pytest.raises(ValueError, match="positive"):
            profile.snapshot(seconds=0)
    with opstrobe.profile() as profile, pytest.raises(RuntimeError, match="no recording file"):
        profile.snapshot()
    with pytest.raises(RuntimeError, match="does not record"):
        profile.snapshot()


@pytest.mark.parametrize(("text", "size"), [("256MB", 2**28), ("1G", 2**30), ("1.5 MiB", 3 * 2**19), (2**22, 2**22)])
def test_sizes(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "big", "-1MB", "10", "1TB", True])
def test_invalid_sizes(text: str | int) -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        opstrobe.black_box(max_bytes=text)


def test_invalid_seconds() -> None:
    with pytest.raises(ValueError, match="seconds"):
        opstrobe.black_box(seconds=0)


def test_a_wrong_variable_harms_nobody(program: Path) -> None:
    environment = {**os.environ, "OPSTROBE_BLACK_BOX": "often"}
    done = subprocess.run([sys.executable, program, "end"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "OPSTROBE_BLACK_BOX has no effect" in done.stderr
