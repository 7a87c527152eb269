# SPDX-License-Identifier: Apache-2.0
"""Two-process data-parallel training of a tabular demand model (gloo, CPU)."""

import contextlib
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

N_FEATURES, WORLD = 48, 2


def sales(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, N_FEATURES, generator=g)
    w = torch.randn(N_FEATURES, 4, generator=torch.Generator().manual_seed(7)) / N_FEATURES**0.5
    z = x @ w
    y = torch.sin(2 * z[:, 0]) + z[:, 1] * z[:, 2] + 0.5 * z[:, 3].abs()
    return x, y + 0.1 * torch.randn(n, generator=g)


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def build(width=256, depth=3):
    return nn.Sequential(
        nn.Linear(N_FEATURES, width),
        *(ResidualBlock(width) for _ in range(depth)),
        nn.LayerNorm(width),
        nn.Linear(width, 1),
        nn.Flatten(0),
    )


def epoch_rows(n, rank, seed):
    """The same permutation on both ranks, dealt out alternately."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[rank::WORLD]


def train(rank, init_file, epochs=4, batch=256, accumulate=2):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = DistributedDataParallel(build(), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    x, y = sales(36_864, seed=1)
    test_x, test_y = sales(4096, seed=2)
    start = time.perf_counter()
    for epoch in range(epochs):
        model.train()
        total = torch.zeros(())
        chunks = epoch_rows(len(x), rank, seed=epoch).split(batch)
        for i, rows in enumerate(chunks, 1):
            update = i % accumulate == 0
            with contextlib.nullcontext() if update else model.no_sync():
                loss = F.huber_loss(model(x[rows]), y[rows])
                (loss / accumulate).backward()
            total += loss.detach()
            if update:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        model.eval()
        with torch.inference_mode():
            # each rank scores its half of the test rows
            mine = slice(rank, None, WORLD)
            error = F.mse_loss(model.module(test_x[mine]), test_y[mine], reduction="sum")
        report = torch.stack([total / len(chunks) / WORLD, error / len(test_y)])
        dist.all_reduce(report)
        if rank == 0:
            loss, mse = report.tolist()
            print(f"epoch {epoch}: train {loss:.4f}  test mse {mse:.4f}", flush=True)
    if rank == 0:
        print(f"loop {time.perf_counter() - start:.2f}s", flush=True)
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.join(folder, "rendezvous"),), nprocs=WORLD)


if __name__ == "__main__":
    main()
