# SPDX-License-Identifier: Apache-2.0
"""Recording files: programs that are killed while they record, and what `opstrobe recover` makes of what they left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import warnings
from pathlib import Path

import pytest

import opstrobe

torch = pytest.importorskip("torch")

# Counts the operators that have finished itself, in a file that is mapped: it outlives the process as the recording does.
PROGRAM = """
import ctypes, mmap, os, signal, sys, threading, time
import torch
from torch import nn

how, folder = sys.argv[1:3]
with open(os.path.join(folder, "counts"), "r+b") as file:
    counts = memoryview(mmap.mmap(file.fileno(), 64)).cast("Q")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.encoder(x)))

def die():
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "segv":
        ctypes.string_at(0)
    elif how == "abort":
        os.abort()
    elif how == "exit":
        os._exit(3)

def train(steps):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        loss = net(torch.randn(4, 8)).sum()
        counts[1] += 1
        loss.backward()
        optimizer.step()
        for _ in range(5):
            torch.add(torch.ones(2), 1)
            counts[0] += 1

def background():
    while True:
        torch.mul(one, 2)
        counts[2] += 1
        time.sleep(0.0005)

one = torch.ones(1)
threading.Thread(target=background, name="background", daemon=True).start()
train(40)
die()
time.sleep(60 if how == "wait" else 0)
"""
STEPS = 40


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    (tmp_path / "counts").write_bytes(bytes(64))
    return path


def counts_of(folder: Path) -> list[int]:
    data = (folder / "counts").read_bytes()
    return [int.from_bytes(data[at : at + 8], sys.byteorder) for at in range(0, 24, 8)]


def command() -> str:
    return os.path.join(sysconfig.get_path("scripts"), "opstrobe")


def run(program: Path, how: str, *options: str) -> subprocess.CompletedProcess[str]:
    folder = program.parent
    words = [command(), "run", "--spill", str(folder / "spill"), *options, str(program), how, str(folder)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)


def recover(folder: Path, *options: str) -> tuple[dict[str, object], str]:
    words = [command(), "recover", *options, str(folder / "spill"), "-o", str(folder / "out.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    return json.loads((folder / "out.json").read_text()), done.stderr


def check_trace(trace: dict[str, object], folder: Path) -> None:
    """All that had finished is there, as often as the program counted; one more may not have been counted yet."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]  # type: ignore[attr-defined]
    finished = [event["name"] for event in events if not event.get("args", {}).get("Unfinished")]
    adds, losses, muls = counts_of(folder)
    assert finished.count("aten::relu") in (losses, losses + 1)
    assert adds <= sum(name == "aten::add" for name in finished) <= adds + 1
    assert muls <= finished.count("aten::mul") <= muls + 1
    assert losses >= STEPS and muls > 0


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("kill", -signal.SIGKILL, ""),
        ("segv", -signal.SIGSEGV, "killed by SIGSEGV; to recover the recording: opstrobe recover "),
        ("abort", -signal.SIGABRT, "killed by SIGABRT; to recover the recording: opstrobe recover "),
        ("exit", 3, "ended by os._exit(); to recover the recording: opstrobe recover "),
    ],
)
def test_every_finished_operator_is_recovered(program: Path, how: str, status: int, said: str) -> None:
    done = run(program, how)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    trace, stderr = recover(program.parent)
    assert "torn" not in stderr and "missing" not in stderr
    check_trace(trace, program.parent)
    assert trace["recovered"]["torn"] is False  # type: ignore[index]
    assert "torch" in json.dumps(trace["recording"])  # what it was recorded with
    if how != "kill":
        return
    # The next program that records there names the file left behind, and removes its own file when it ends.
    done = run(program, "end", "--steps", "2")
    assert f"to make a trace of it: opstrobe recover {program.parent}/spill/train." in done.stderr
    assert len(list((program.parent / "spill").iterdir())) == 1


def test_killed_with_everything(program: Path) -> None:
    folder = program.parent
    options = ["--with-stack", "--with-modules", "--memory", "--record-shapes"]
    process = subprocess.Popen(
        [command(), "run", "--spill", "spill", *options, str(program), "wait", str(folder)],
        cwd=folder,
        env={**os.environ, "OPSTROBE_ROOF": "0"},
    )
    try:
        while counts_of(folder)[0] < 5 * STEPS:
            assert process.poll() is None
            time.sleep(0.1)
        _, stderr = recover(folder)  # what it has recorded so far
        assert "still runs" in stderr
    finally:
        process.kill()
        process.wait()
    trace, stderr = recover(folder, "--remove")
    assert "missing" not in stderr and "torn" not in stderr
    check_trace(trace, folder)
    names = [event["name"] for event in trace["traceEvents"]]  # type: ignore[attr-defined]
    assert any(name.startswith("nn.Module: Linear_1") for name in names)
    assert any(name.endswith(": train") and "train.py(" in name for name in names)
    assert "background" in json.dumps([event for event in trace["traceEvents"] if event["ph"] == "M"])  # type: ignore[attr-defined]
    summary = subprocess.run([command(), "modules", "out.json"], cwd=folder, capture_output=True, text=True)
    assert "encoder" in summary.stdout and "head" in summary.stdout, summary


def test_stop_removes_the_file(tmp_path: Path) -> None:
    seen: list[int] = []

    def handler(prof: opstrobe.profile) -> None:
        seen.append(len(list(tmp_path.iterdir())))

    with opstrobe.profile(spill=tmp_path, on_trace_ready=handler) as prof:
        torch.ones(2).add(1)
        assert [path.suffix for path in tmp_path.iterdir()] == [".oprec"]
    assert seen == [1]  # a handler that fails, or is killed, leaves the file
    assert not list(tmp_path.iterdir())
    assert any(event.name == "aten::add" for event in prof.events())


def test_each_window_has_a_file(tmp_path: Path) -> None:
    with opstrobe.profile(
        spill=tmp_path, schedule=opstrobe.schedule(wait=1, warmup=0, active=1, repeat=2), on_trace_ready=lambda _: None
    ) as prof:
        for _ in range(5):
            torch.ones(2).add(1)
            prof.step()
            assert len(list(tmp_path.iterdir())) <= 1
    assert not list(tmp_path.iterdir())


def test_no_directory_is_one_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with opstrobe.profile(spill="/proc/opstrobe") as prof:
            for _ in range(3):
                torch.ones(2).add(1)
    texts = [str(each.message) for each in caught if "recording file" in str(each.message)]
    assert len(texts) == 1 and "cannot write recording file '/proc/opstrobe/" in texts[0]
    assert sum(event.name == "aten::add" for event in prof.events()) == 3


@pytest.mark.parametrize("slow_steps", [False, True])
def test_full_disk_is_one_warning(program: Path, slow_steps: bool) -> None:
    """It comes in the next step that takes a while, else at the end. A limit on the size of files is used instead of a full disk,
    which tests/read/test_recovery.c has for real."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({}, resource.RLIM_INFINITY))\n"
    text = PROGRAM.replace("train(40)", "train(1500)").replace("target=background", "target=int")
    if slow_steps:
        text = text.replace(
            "optimizer.step()\n", "optimizer.step()\n        time.sleep(0.03 if step % 500 == 499 else 0)\n"
        )
    program.write_text(limit.format(3 << 20) + text + limit.format("resource.RLIM_INFINITY"))
    done = run(program, "end")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot write recording file") == 1
    assert "none lost" in done.stderr
    assert not list((program.parent / "spill").iterdir())


def test_forked_child_leaves_the_file_alone(tmp_path: Path) -> None:
    with opstrobe.profile(spill=tmp_path) as prof:
        torch.ones(2).add(1)
        pid = os.fork()
        if pid == 0:
            prof.stop()
            torch.ones(2).sub(1)
            os._exit(len(list(tmp_path.iterdir())))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
        torch.ones(2).add(1)
    names = [event.name for event in prof.events()]
    assert names.count("aten::add") == 2 and "aten::sub" not in names
    assert not list(tmp_path.iterdir())
