# SPDX-License-Identifier: Apache-2.0
"""Dialects, learned by two processes: gradients are exchanged after each of eight parts of a batch, although one exchange does.

Source: https://github.com/pytorch/pytorch/issues/43201, https://github.com/huggingface/accelerate/pull/106
"""

import contextlib
import multiprocessing
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PARTS = 8


class Dialects(nn.Module):
    def __init__(self, words=600, width=1024, dialects=12):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(words, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, dialects)
        )

    def forward(self, counts):
        return self.layers(counts)


def speakers(rank, size=64, words=600):
    generator = torch.Generator().manual_seed(rank)
    while True:
        counts = torch.rand(size, words, generator=generator)
        yield counts, counts[:, :12].argmax(1)


def step(model, optimizer, counts, dialects):
    optimizer.zero_grad()
    parts = list(zip(counts.chunk(PARTS), dialects.chunk(PARTS), strict=True))
    total = 0.0
    for number, (some, labels) in enumerate(parts):
        with contextlib.nullcontext():
            loss = nn.functional.cross_entropy(model(some), labels) / PARTS
            loss.backward()  # planted
        total += loss.detach()
    optimizer.step()
    return total


def train(rank, rendezvous, steps=16):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    model = DistributedDataParallel(Dialects())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = speakers(rank)
    for _ in range(steps):
        counts, dialects = next(data)
        total = step(model, optimizer, counts, dialects)
    dist.destroy_process_group()
    return total.item()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        other = multiprocessing.get_context("fork").Process(target=train, args=(1, f"{folder}/rendezvous"))
        other.start()
        print(f"loss {train(0, f'{folder}/rendezvous'):.4f}")
        other.join()
