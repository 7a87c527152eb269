# SPDX-License-Identifier: Apache-2.0
"""The part of the suite that runs on two ranks: two processes over Gloo, each profiled, advised on together.

A program is a file in `rank_programs/`, as in `programs/` but for `build(fixed, rank)`, which is called once the ranks can
communicate. All run in the same two processes, one after the other. `python ranks.py` prints the table of the score,
`python ranks.py NAME` one program's advice.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

import suite
import torch
import torch.distributed
import torch.multiprocessing

import opstrobe

PROGRAMS = pathlib.Path(__file__).parent / "rank_programs"
RANKS = 2
STEPS = 4
ROUNDS = 20  # of four steps, to measure


def programs() -> list[suite.Program]:
    return suite.programs(PROGRAMS)


def _record(program: suite.Program, rank: int, folder: pathlib.Path) -> None:
    step = program.module.build(False, rank)
    schedule = opstrobe.schedule(wait=0, warmup=2, active=STEPS, repeat=1)
    with opstrobe.profile(
        activities=[opstrobe.ProfilerActivity.CPU], schedule=schedule, record_shapes=True, with_stack=True
    ) as profile:
        for _ in range(2 + STEPS):
            step()
            profile.step()
    profile.export_chrome_trace(str(folder / f"rank-{rank}.json"))


def _measure(program: suite.Program, rank: int, rounds: int, folder: pathlib.Path) -> None:
    """The quickest step without the fix and with it. Both take turns, and the ranks begin each together."""
    steps = [program.module.build(fixed, rank) for fixed in (False, True)]
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for which, step in enumerate(steps):
            torch.distributed.barrier()
            start = time.perf_counter()
            for _ in range(4):
                step()
            best[which] = min(best[which], (time.perf_counter() - start) / 4)
    (folder / f"measured-{rank}.json").write_text(json.dumps([1e3 * seconds for seconds in best]))


def _work(rank: int, folder: str, rounds: int) -> None:
    faulthandler.enable()
    torch.set_num_threads(1)
    store = torch.distributed.FileStore(f"{folder}/store", RANKS)
    torch.distributed.init_process_group(
        "gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=120)
    )
    for program in programs():
        own = pathlib.Path(folder) / program.name
        own.mkdir(exist_ok=True)
        torch.manual_seed(rank)
        _record(program, rank, own)
        if not program.healthy:
            _measure(program, rank, rounds, own)
    # Gloo's threads may be at work while a rank closes down, and abort it (torch 2.13): both wait to be ended.
    _done(folder, rank).touch()
    signal.pause()


def _done(folder: str, rank: int) -> pathlib.Path:
    return pathlib.Path(folder) / f"done-{rank}"


@functools.cache
def _run(rounds: int, attempt: int = 0) -> tempfile.TemporaryDirectory[str]:
    """A folder for each program with the traces of its ranks and what its fix gains. Each attempt records again."""
    folder = tempfile.TemporaryDirectory()
    ranks = torch.multiprocessing.spawn(_work, args=(folder.name, rounds), nprocs=RANKS, join=False, daemon=True)
    while not all(_done(folder.name, rank).exists() for rank in range(RANKS)):
        ranks.join(timeout=0.05)  # raises what went wrong in one
    for process in ranks.processes:
        process.kill()
        process.join()
    return folder


def judge(program: suite.Program, rounds: int = ROUNDS, attempt: int = 0) -> suite.Verdict:
    traces = sorted(map(str, (pathlib.Path(_run(rounds, attempt).name) / program.name).glob("rank-*.json")))
    command = pathlib.Path(sys.executable).parent / "opstrobe"
    done = subprocess.run([command, "advise", "--format", "json", *traces], capture_output=True, check=True)
    return suite.Verdict(program, json.loads(done.stdout)["findings"])


def measure(program: suite.Program, rounds: int = ROUNDS) -> tuple[float, float]:
    slow, quick = json.loads((pathlib.Path(_run(rounds).name) / program.name / "measured-0.json").read_text())
    return slow, quick


if __name__ == "__main__":
    suite.main(sys.argv[1:], programs(), judge, measure)
