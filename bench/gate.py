# SPDX-License-Identifier: Apache-2.0
"""False alarms and missed regressions of `opstrobe ab` and `opstrobe diff --gate counts`, with real runs on this machine: a program of
25 ms against itself and against one that does 3 % more work, and recordings of a program with one operator more.

python bench/gate.py [--comparisons 100] [--clock auto cpu wall] [--recordings 5] [--busy 2]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from opstrobe.ci import ab, counts
from opstrobe.ci.sequential import Decision, Verdict

PROGRAM = """
#include <stdlib.h>
int main(int count, char **words)
{
	volatile unsigned x = 1;
	for (long i = atol(words[1]); i; i--)
		x = x * 1664525u + 1013904223u;
	return 0;
}
"""
# Takes about 25 ms, so that the start of a process is a small part.
WORK = 10_000_000
STEPS = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(5):
    x = torch.randn(8, 32)
    loss = net(x).square().mean()
    loss.backward()
    {more}
    optimizer.step()
    optimizer.zero_grad()
"""


@contextlib.contextmanager
def busy(processes: int):
    """Other programs that compute."""
    started = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def compiled(folder: pathlib.Path) -> str:
    (folder / "work.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", folder / "work.c", "-o", folder / "work"], check=True)
    return str(folder / "work")


def print_times(folder: pathlib.Path, options: argparse.Namespace) -> None:
    program = compiled(folder)
    for clock in options.clock:
        base, slow = options.commands or (
            f"{program} {options.work}",
            f"{program} {slower_work(program, options.work, folder)}",
        )
        equal, slower = [], []
        for i in range(options.comparisons):
            equal.append(compare(base, base, clock, options, folder))
            if not options.equal_only:
                slower.append(compare(base, slow, clock, options, folder))
            if i % 10 == 9 or i + 1 == options.comparisons:
                print_verdicts(f"{clock}: the same program twice", equal)
                print_verdicts(f"{clock}: 3 % more work", slower)


def print_verdicts(title: str, decisions: list[Decision]) -> None:
    if not decisions:
        return
    verdicts = ", ".join(f"{sum(each.verdict is verdict for each in decisions)} {verdict.value}" for verdict in Verdict)
    pairs = sorted(each.pairs for each in decisions)
    clocks = ", ".join(f"{name} {sum(each.clock == name for each in decisions)}" for name in decisions[0].clocks)
    above = sum(any(bounds.interval.lower > 0 for bounds in each.clocks.values()) for each in decisions)
    print(
        f"  {title}: {len(decisions)} comparisons, {verdicts}; decided by {clocks}; pairs: median {statistics.median(pairs):.0f}, "
        f"90th percentile {pairs[len(pairs) * 9 // 10]}, most {pairs[-1]}; lower bounds above 0: {above}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def slower_work(program: str, work: int, folder: pathlib.Path) -> int:
    """Work with which the command takes 3 % more CPU time; its start takes part of it."""
    start, total = (
        statistics.median(ab.run(f"{program} {each}", str(folder / "none"), "cpu")["cpu"] for _ in range(31))
        for each in (0, work)
    )
    return round(work * (1 + 0.03 * total / (total - start)))


def compare(base: str, head: str, clock: str, options: argparse.Namespace, folder: pathlib.Path) -> Decision:
    words = ["--clock", clock, "--pairs", str(options.pairs), "--minutes", str(options.minutes), "--", base, head]
    return ab.measure(ab.parser().parse_args(words), str(folder))[0]


def record(folder: pathlib.Path, name: str, more: str) -> str:
    (folder / "steps.py").write_text(STEPS.format(more=more))
    trace = str(folder / f"{name}.json.gz")
    command = [pathlib.Path(sys.executable).with_name("opstrobe"), "run", "-o", trace, "steps.py"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env={**os.environ, "OPSTROBE_ROOF": "0"})
    return trace


def print_counts(folder: pathlib.Path, recordings: int) -> None:
    bases = [record(folder, f"base{i}", "pass") for i in range(recordings)]
    heads = [record(folder, f"head{i}", "loss.detach().add(1)") for i in range(recordings)]

    def regressions(pairs: list[tuple[str, str]]) -> int:
        return sum(any(change.is_regression for change in counts.compare(*pair)) for pair in pairs)

    equal = [(a, b) for a in bases for b in bases if a != b]
    changed = [(a, b) for a in bases for b in heads]
    print(f"  counts: {regressions(equal)} of {len(equal)} pairs of equal recordings differ; "
          f"{regressions(changed)} of {len(changed)} pairs with one operator more found")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clock", nargs="*", choices=("auto", "cpu", "wall"), default=("auto",))
    parser.add_argument("--work", type=int, default=WORK, help="iterations of the program")
    parser.add_argument("--commands", nargs=2, metavar=("BASE", "SLOW"), help="compare these instead")
    parser.add_argument("--equal-only", action="store_true", help="run no slower programs")
    parser.add_argument("--recordings", type=int, default=5)
    parser.add_argument("--busy", type=int, default=2, help="processes that compute meanwhile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, busy(options.busy):
        folder = pathlib.Path(name)
        print(
            f"{options.comparisons} comparisons of at most {options.pairs} pairs, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        print_times(folder, options)
        if options.recordings:
            print_counts(folder, options.recordings)


if __name__ == "__main__":
    main()
