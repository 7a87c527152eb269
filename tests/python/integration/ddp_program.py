# SPDX-License-Identifier: Apache-2.0
"""Two processes that train one model with DistributedDataParallel over Gloo, each profiling itself into FOLDER."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed
import torch.multiprocessing
from judged import ALL_OPTIONS, judge

import opstrobe


def work(rank, folder):
    store = torch.distributed.FileStore(os.path.join(folder, "store"), 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=120))
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = opstrobe.schedule(wait=0, warmup=1, active=2, repeat=1)
    with opstrobe.profile(schedule=steps, **ALL_OPTIONS) as profile:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.full((2, 16), float(rank))).square().mean().backward()
            optimizer.step()
            profile.step()
    judge(profile, Path(folder) / f"rank{rank}.json")
    # Through files: a collective shortly before the end makes Gloo's thread drop a tensor while Python is closing down,
    # which is the end of the process (torch 2.13).
    torch.save(model.module.weight.detach(), Path(folder) / f"weight{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, args=(sys.argv[1],), nprocs=2)
    # The gradients were averaged: the models are still the same.
    assert torch.equal(*(torch.load(Path(sys.argv[1]) / f"weight{rank}.pt") for rank in range(2)))
