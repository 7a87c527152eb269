# SPDX-License-Identifier: Apache-2.0
"""Trains without any incident while other processes disturb it: healthy.py STEPS BOX INCIDENTS [BUDGET].

The other processes take the processors and write files, in bursts of random length. The tiny steps of a small model show each
disturbance. Prints what was done.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = 2  # processes


def disturb(seed: int) -> None:
    """Runs until the parent process has ended."""
    draw = random.Random(seed)
    parent = os.getppid()
    with tempfile.TemporaryFile() as file:
        while os.getppid() == parent:
            until = time.monotonic() + draw.expovariate(1 / 0.05)
            writes = draw.random() < 0.2
            while time.monotonic() < until:
                if writes:
                    file.write(os.urandom(1 << 16))
                else:
                    sum(range(1000))
            file.seek(0)
            time.sleep(draw.expovariate(1 / 0.1))


@contextmanager
def disturbed() -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, __file__, "disturb", str(seed)]) for seed in range(NOISE)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main(steps: int, box: str, incidents: str, budget: str = "1%") -> None:
    import torch

    import opstrobe

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, targets = torch.randn(16, 64), torch.randint(10, (16,))
    begin, longest_ns = time.monotonic(), 0
    with disturbed(), opstrobe.black_box(spill=box, incidents=incidents, budget=budget):
        before_ns = time.monotonic_ns()
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            now_ns = time.monotonic_ns()
            longest_ns = max(longest_ns, now_ns - before_ns)
            before_ns = now_ns
    seconds = time.monotonic() - begin
    print(f"{steps:,} steps in {seconds:.0f} s, the longest {longest_ns / 1e6:.1f} ms", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "disturb":
        disturb(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]), *sys.argv[2:])
