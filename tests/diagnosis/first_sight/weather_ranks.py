# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on two processes: a deep narrow network forecasts the temperature of the next hours at a
weather station from the last two days; every process has its own stations. Prints the loss of the first process."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WINDOW, AHEAD, BATCH, STEPS = 48, 6, 192, 90


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(torch.tanh(self.inner(self.norm(x))))


def build(width=48, depth=20):
    torch.manual_seed(150)
    return nn.Sequential(nn.Linear(WINDOW, width), *[Residual(width) for _ in range(depth)], nn.Linear(width, AHEAD))


class Stations:
    """Daily and weekly waves with an own phase per station, plus noise."""

    def __init__(self, rank):
        self.generator = torch.Generator().manual_seed(151 + rank)

    def batch(self):
        hour = torch.arange(WINDOW + AHEAD).float()
        phase = torch.rand(BATCH, 2, 1, generator=self.generator) * 6.28
        level = torch.randn(BATCH, 1, generator=self.generator)
        wave = torch.sin(hour / 24 * 6.28 + phase[:, 0]) + 0.4 * torch.sin(hour / 168 * 6.28 + phase[:, 1])
        series = level + wave + 0.1 * torch.randn(BATCH, WINDOW + AHEAD, generator=self.generator)
        return series[:, :WINDOW], series[:, WINDOW:]


def average_gradients(model):
    """After this every process holds the mean of the gradients of all processes."""
    world = dist.get_world_size()
    grads = [parameter.grad for parameter in model.parameters()]
    for grad in grads:  # planted
        dist.all_reduce(grad)  # planted
        grad /= world


def connect(rank, path):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)


def train(rank, path):
    connect(rank, path)
    model, stations = build(), Stations(rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        past, future = stations.batch()
        loss = nn.functional.mse_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    dist.barrier()
    dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        other = mp.get_context("fork").Process(target=train, args=(1, meeting))
        other.start()
        history = train(0, meeting)
        other.join()
    print(f"loss {history[0]:.3f} at the start, {sum(history[-10:]) / 10:.3f} at the end")
