# SPDX-License-Identifier: Apache-2.0
"""`--steps` of commands that list what a trace contains: the figures are those of the trace that `cut --steps` makes, and text says what it
covers."""

import json
import re

import pytest

OK, USAGE = 0, 2


def row(category, name, ts, dur, **more):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Three steps after as much work, with a launch, a module, a line and memory that is held from before the steps."""
    rows = []
    for at in range(6):
        begin, args = (
            1000 * at,
            {"External id": at + 1, "Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]},
        )
        if at >= 3:
            rows.append(row("user_annotation", f"ProfilerStep#{at}", begin, 900))
        rows += [
            row("python_function", "train.py(7): step", begin + 1, 800, args={"Python id": 2 * at + 1, "Python parent id": None}),
            row("python_function", "nn.Module: Linear_0", begin + 5, 700, args={"Python id": 2 * at + 2, "Python module id": 0}),
            row("cpu_op", "aten::mm", begin + 10, 100 + 10 * at, args=args),
            row("cuda_runtime", "cudaLaunchKernel", begin + 20, 5, args={"correlation": at + 1, "External id": at + 1}),
            {**row("kernel", "gemm", begin + 40, 60, args={"correlation": at + 1, "stream": 7, "device": 0}), "pid": 0, "tid": 7},
            *({"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": begin + 30 + i,
               "args": {"Device Type": 0, "Device Id": -1, "Addr": addr, "Bytes": size, "Total Allocated": 0}}
              for i, (addr, size) in enumerate([(64 + at, 8192 if at < 3 else 4096)] + ([(64 + at, -8192)] if at < 2 else []))),
        ]  # fmt: skip
    path = tmp_path_factory.mktemp("steps")
    (path / "t.pt.trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
    return path


@pytest.mark.parametrize("command", ["kernels", "modules", "lines", "roofline"])
def test_the_figures_are_those_of_the_part(opstrobe, directory, command):
    assert opstrobe("cut", "--steps", "4:5", "t.pt.trace.json", "part.json", cwd=directory).returncode == OK
    words = ("--roof", "1T,100G") if command == "roofline" else ()
    for form in ("json", "csv", "text", "markdown"):
        listed = opstrobe(command, "--format", form, *words, "--steps", "4:5", "t.pt.trace.json", cwd=directory)
        assert listed.returncode == OK and not listed.stderr, listed.stderr
        part = opstrobe(command, "--format", form, *words, "part.json", cwd=directory)
        head = "steps 4 to 5\n\n" if form in ("text", "markdown") else ""
        printed, expected = (re.sub(r'"row":\d+', '"row":0', each.stdout) for each in (listed, part))
        assert printed == head + expected  # links are to rows of the complete trace
    whole = opstrobe(command, *words, "t.pt.trace.json", cwd=directory).stdout
    assert whole.startswith("the whole trace; steps 3 to 5 alone: --steps 3:5\n\n")
    assert whole != listed.stdout
    machine = opstrobe(command, "--format", "csv", *words, "t.pt.trace.json", cwd=directory)
    assert "whole trace" not in machine.stdout + machine.stderr
    steps = opstrobe(command, "--format", "text", *words, "part.json", cwd=directory).stdout
    assert not steps.startswith("the whole trace")


def test_memory_held_from_before_the_steps_counts(opstrobe, directory):
    def held(*words):
        process = opstrobe("memory", "--format", "json", *words, "t.pt.trace.json", cwd=directory)
        assert process.returncode == OK, process.stderr
        table = json.loads(process.stdout)["table"]
        rows = [dict(zip(table["columns"], cells, strict=True)) for cells in table["rows"]]
        return next(each["bytes"] for each in rows if each["held_by"] == "all")

    assert held("--steps", "3") == 8192 + 4096
    assert held() == held("--steps", "3:5") == 8192 + 3 * 4096
    text = opstrobe("memory", "--steps", "3", "t.pt.trace.json", cwd=directory).stdout
    assert text.startswith("step 3\n\nPeak memory of CPU: 12.0 KiB")
    process = opstrobe("memory", "--steps", "3", "--at", "1ms", "t.pt.trace.json", cwd=directory)
    assert process.returncode == USAGE and "either --at or --steps" in process.stderr


@pytest.mark.parametrize("command", ["kernels", "modules", "lines", "roofline", "memory"])
def test_steps_that_do_not_exist(opstrobe, directory, command):
    process = opstrobe(command, "--steps", "9", "t.pt.trace.json", cwd=directory)
    assert process.returncode == USAGE and not process.stdout
    assert process.stderr == "opstrobe: the trace has no step 9 (choose from 3 to 5)\n"
    for steps in ("5:3", "x", "", "3:", "99999999999999999999"):
        process = opstrobe(command, "--steps", steps, "t.pt.trace.json", cwd=directory)
        assert process.returncode == USAGE and "invalid range of steps" in process.stderr, steps


def test_several_traces_say_which(opstrobe, directory):
    (directory / "u.pt.trace.json").write_text((directory / "t.pt.trace.json").read_text())
    text = opstrobe("kernels", "--steps", "4", "t.pt.trace.json", "u.pt.trace.json", cwd=directory).stdout
    assert "t.pt.trace.json: step 4\n" in text and "u.pt.trace.json: step 4\n" in text
    text = opstrobe("modules", "--steps", "4", "t.pt.trace.json", "u.pt.trace.json", cwd=directory).stdout
    assert "--- u.pt.trace.json ---\nstep 4\n" in text
