# SPDX-License-Identifier: Apache-2.0
"""Recordings whose memory is limited, and stops without memory. Limits are those of a separate process."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import opstrobe

WITHOUT_MEMORY = """
    import contextlib, resource
    import torch, opstrobe

    @contextlib.contextmanager
    def without_memory():
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    def adds(prof):
        return sum(event.name == "aten::add" for event in prof.events()), prof.profiler.trace.lost

    x = torch.ones(4)
"""


def run(program: str, *arguments: str) -> str:
    text = textwrap.dedent(WITHOUT_MEMORY) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "options", ["{}", "dict(with_stack=True, with_modules=True, profile_memory=True, record_shapes=True)"]
)
def test_a_second_stop_gives_what_the_first_could_not(options: str) -> None:
    said = run(
        """
        import sys
        prof = opstrobe.profile(**eval(sys.argv[1]))
        prof.start()
        for _ in range(20_000):
            x + x
        with without_memory():
            for _ in range(2):
                try:
                    prof.stop()
                except MemoryError as error:
                    print(error)
        x + x  # is not recorded
        prof.stop()
        prof.stop()
        print(adds(prof))
        with opstrobe.profile() as next_one:
            x + x
        print(adds(next_one))
        """,
        options,
    )
    message = "cannot stop the session: out of memory; the recording is kept: free memory and stop again"
    assert said.splitlines() == [message, message, "(20000, 0)", "(1, 0)"]


def test_steps_go_on_after_a_window_that_could_not_be_stopped() -> None:
    said = run(
        """
        windows = []
        prof = opstrobe.profile(
            schedule=opstrobe.schedule(wait=0, warmup=0, active=1), on_trace_ready=lambda prof: windows.append(adds(prof))
        )
        prof.start()
        for _ in range(5000):
            x + x
        with without_memory():
            try:
                prof.step()
            except MemoryError:
                print("no memory", windows)
        x + x
        prof.step()
        x + x
        prof.step()
        prof.stop()
        print(windows)
        """
    )
    # The step during which memory was out is not recorded; the next is, and so is the one that stop() ends.
    assert said.splitlines() == ["no memory []", "[(5000, 0), (0, 0), (1, 0), (0, 0)]"]


def test_a_profile_dropped_without_memory_leaves_nothing_behind() -> None:
    said = run(
        """
        prof = opstrobe.profile()
        prof.start()
        x + x
        with without_memory():
            try:
                prof.stop()
            except MemoryError:
                print("no memory")
        del prof
        with opstrobe.profile() as prof:
            x + x
        print(adds(prof))
        """
    )
    assert said.splitlines() == ["no memory", "(1, 0)"]


def test_max_bytes_limits_a_recording() -> None:
    said = run(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with opstrobe.profile(max_bytes=2**20) as prof:
                for _ in range(50_000):
                    x + x
        kept, lost = adds(prof)
        print(kept + lost, 2**20 / 80 < kept < 2**20 / 56, [str(warning.message) for warning in caught])
        print(lost)
        """
    )
    first, lost = said.splitlines()
    assert first == f"50000 True ['{lost} records could not be kept and are missing from the profile']"


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-1, ValueError), (2**63, ValueError), ("1G", TypeError), (True, TypeError)]
)
def test_max_bytes_is_checked(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_bytes must be"):
        opstrobe.profile(max_bytes=value)  # type: ignore[arg-type]


def run_recorded(tmp_path: Path, program: str, *options: str) -> tuple[int, str]:
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "-m", "opstrobe.run", "-o", "trace.json.gz", *options, str(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    return done.returncode, done.stderr


def test_run_names_the_reason_why_there_is_no_trace(tmp_path: Path) -> None:
    program = """
        import resource, torch
        x = torch.ones(4)
        for _ in range(5000):
            x + x
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, resource.RLIM_INFINITY))
    """
    status, said = run_recorded(tmp_path, program)
    assert status == 1
    assert said.splitlines()[-1] == (
        "opstrobe: no trace was written: out of memory; record fewer steps (--steps), or less of them (--max-bytes)"
    )
    assert not (tmp_path / "trace.json.gz").exists()


def test_run_takes_max_bytes(tmp_path: Path) -> None:
    program = """
        import torch
        x = torch.ones(4)
        for _ in range(30_000):
            x + x
    """
    status, said = run_recorded(tmp_path, program, "--max-bytes", "0.5M")
    assert status == 0 and "LOST (out of memory, see --max-bytes)" in said
    with gzip.open(tmp_path / "trace.json.gz") as file:
        adds = sum(event.get("name") == "aten::add" for event in json.load(file)["traceEvents"])
    assert 2**19 / 80 < adds < 2**19 / 56


@pytest.mark.parametrize("size", ["", "x", "12", "63K", "-1G", "1e40G", "nanG", "1T"])
def test_run_refuses_sizes_that_are_none(tmp_path: Path, size: str) -> None:
    status, said = run_recorded(tmp_path, "", f"--max-bytes={size}")
    assert status == 2 and f"'{size}' is not a size" in said
