# SPDX-License-Identifier: Apache-2.0
"""Time series, tabular: taxi demand of the next hour in a zone from 256 lagged and calendar features. The
features arrive from the column store as one row per feature. Prints the error of a small network."""

import math

import torch
from torch import nn

FEATURES = 256
ROWS = 160_000
BATCH = 3072
STEPS = 120


def column_store(generator):
    """One row per feature: lagged counts of a noisy daily rhythm first, calendar waves after them."""
    phase = torch.rand(ROWS, generator=generator) * 2 * math.pi
    level = 1 + torch.rand(ROWS, generator=generator)
    table = torch.empty(FEATURES, ROWS)
    for lag in range(FEATURES - 16):
        noise = torch.rand(ROWS, generator=generator) - 0.5
        table[lag] = level * (1 + torch.sin(phase - lag * 0.26)) + 0.4 * noise
    for wave in range(16):
        table[FEATURES - 16 + wave] = torch.cos(phase * (wave + 1))
    demand = level * (1 + torch.sin(phase + 0.26))
    return table, demand


class DemandNet(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.outer = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.outer(self.inner(x)).squeeze(-1)


class RandomRows:
    """Yields batches of randomly chosen samples of the table."""

    def __init__(self, table, demand, generator):
        self.table = table  # planted
        self.demand = demand
        self.generator = generator

    def __call__(self, size):
        chosen = torch.randint(ROWS, (size,), generator=self.generator)
        features = self.table[:, chosen].t()  # planted
        return features, self.demand[chosen]


def fit(model, sampler, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for step in range(steps):
        features, demand = sampler(BATCH)
        loss = nn.functional.smooth_l1_loss(model(features), demand)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(18)
    sampler = RandomRows(*column_store(generator), generator)
    losses = fit(DemandNet(), sampler, STEPS)
    print(f"loss at the start {losses[0]:.3f}, mean of the middle {sum(losses[20:60]) / 40:.3f}")


if __name__ == "__main__":
    main()
