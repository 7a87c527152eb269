# SPDX-License-Identifier: Apache-2.0
"""Environmental science, two processes: temperature profiles of lakes from weather, trained data-parallel.

Each process simulates its own lakes (heat enters at the surface and diffuses down), the model predicts the
temperature at 24 depths from two weeks of weather. Error and bias per depth are averaged over the
processes in every step, since the curve per depth decides when to stop.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WORLD, DEPTHS, DAYS, FEATURES = 2, 24, 14, 5
BATCH, STEPS = 128, 120


class Lakes:
    def __init__(self, rank):
        self.generator = torch.Generator().manual_seed(100 + rank)

    def sample(self, count):
        weather = torch.randn(count, DAYS, FEATURES, generator=self.generator)
        profile = torch.full((count, DEPTHS), 6.0)
        mixing = 0.2 + 0.1 * torch.sigmoid(weather[..., 1])
        for day in range(DAYS):
            heat = 15 + 6 * weather[:, day, 0] + 2 * weather[:, day, 2]
            above = torch.cat([heat.unsqueeze(1), profile[:, :-1]], dim=1)
            below = torch.cat([profile[:, 1:], profile[:, -1:]], dim=1)
            profile = profile + mixing[:, day, None] * (above - 2 * profile + below)
        return weather, profile


class ProfileModel(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.read = nn.Sequential(
            nn.Linear(DAYS * FEATURES, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.profile = nn.Linear(width, DEPTHS)

    def forward(self, weather):
        return 10 + 5 * self.profile(self.read(weather.flatten(1)))


def depth_metrics(predicted, observed):
    """Named scalars of this process."""
    error = predicted.detach() - observed
    metrics = {f"rmse_{depth:02d}": error[:, depth].square().mean().sqrt() for depth in range(DEPTHS)}
    metrics |= {f"bias_{depth:02d}": error[:, depth].mean() for depth in range(DEPTHS)}
    metrics["worst"] = error.abs().amax()
    return metrics


def averaged(metrics):
    """The mean of every metric over the processes."""
    result = {}
    for name, value in metrics.items():
        dist.all_reduce(value)  # planted
        result[name] = value.item() / WORLD
    return result


def train(rank, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=WORLD)
    torch.manual_seed(1)
    lakes = Lakes(rank)
    model = DistributedDataParallel(ProfileModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best = float("inf")
    for step in range(STEPS):
        weather, profile = lakes.sample(BATCH)
        predicted = model(weather)
        loss = nn.functional.mse_loss(predicted, profile)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics = averaged(depth_metrics(predicted, profile))
        surface = sum(metrics[f"rmse_{depth:02d}"] for depth in range(6)) / 6
        best = min(best, surface)
    dist.barrier()
    dist.destroy_process_group()
    return best, metrics


def main():
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        other = mp.get_context("fork").Process(target=train, args=(1, meeting))
        other.start()
        best, metrics = train(0, meeting)
        other.join()
    print(f"best surface error {best:.3f} deep bias {metrics['bias_23']:.3f} worst {metrics['worst']:.2f}")


if __name__ == "__main__":
    main()
