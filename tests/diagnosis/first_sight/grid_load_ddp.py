# SPDX-License-Identifier: Apache-2.0
"""Two-process training of a regional electricity-load forecaster."""

import os
import tempfile
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WORLD, REGIONS, HISTORY, HORIZON = 2, 40, 72, 24
MICRO, ACCUMULATE, UPDATES = 8, 8, 16


class LoadForecaster(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(REGIONS * HISTORY, width),
            nn.GELU(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.GELU(),
            nn.LayerNorm(width),
        )
        self.head = nn.Linear(width, REGIONS * HORIZON)

    def forward(self, history):
        return self.head(self.backbone(history.flatten(1))).view(-1, HORIZON, REGIONS)


def load_curves(rank, hours=4000):
    generator = torch.Generator().manual_seed(100 + rank)
    clock = torch.arange(hours).unsqueeze(1)
    phase = torch.rand(REGIONS, generator=generator) * 6.28
    daily = torch.sin(clock * 6.2832 / 24 + phase)
    weekly = 0.3 * torch.sin(clock * 6.2832 / 168 + phase)
    return daily + weekly + 0.1 * torch.randn(hours, REGIONS, generator=generator)


def micro_batch(curves, generator):
    starts = torch.randint(0, len(curves) - HISTORY - HORIZON, (MICRO, 1), generator=generator)
    span = curves[starts + torch.arange(HISTORY + HORIZON)]
    return span[:, :HISTORY], span[:, HISTORY:]


def worker(rank, rendezvous):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = DistributedDataParallel(LoadForecaster(), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    curves, generator = load_curves(rank), torch.Generator().manual_seed(rank)

    for update in range(1, UPDATES + 1):
        total = torch.zeros(())
        for micro in range(ACCUMULATE):
            history, future = micro_batch(curves, generator)
            context = nullcontext()  # planted
            with context:
                loss = nn.functional.smooth_l1_loss(model(history), future) / ACCUMULATE
                loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        if update % 4 == 0:
            dist.all_reduce(total)
            if rank == 0:
                print(f"update {update:3d}  loss {total.item() / WORLD:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(os.path.join(folder, "store"),), nprocs=WORLD)
