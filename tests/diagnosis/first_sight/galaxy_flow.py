# SPDX-License-Identifier: Apache-2.0
"""Normalising flow for the joint density of galaxy catalogue quantities."""

import math
import time

import torch
from torch import nn

torch.manual_seed(51)

COLUMNS = 8
GALAXIES = 40000
BATCH = 1000


def catalogue():
    """Correlated magnitudes, colours and shapes with curved dependences."""
    latent = torch.randn(GALAXIES, COLUMNS)
    table = latent @ (torch.eye(COLUMNS) + 0.4 * torch.randn(COLUMNS, COLUMNS))
    table[:, 1] += 0.5 * table[:, 0].square()
    table[:, 5] = torch.where(table[:, 4] > 0, table[:, 5] + 2, table[:, 5] - 2)
    return (table - table.mean(0)) / table.std(0)


class Coupling(nn.Module):
    """Affine map of one half of the columns, conditioned on the other half."""

    def __init__(self, hidden=192):
        super().__init__()
        half = COLUMNS // 2
        self.network = nn.Sequential(
            nn.Linear(half, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * half)
        )
        nn.init.zeros_(self.network[-1].weight)
        nn.init.zeros_(self.network[-1].bias)

    def forward(self, fixed, moved):
        log_scale, shift = self.network(fixed).chunk(2, dim=1)
        log_scale = 2 * torch.tanh(log_scale / 2)
        return moved * log_scale.exp() + shift, log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling() for _ in range(depth))
        self.constant = 0.5 * COLUMNS * math.log(2 * math.pi)

    def log_prob(self, rows):
        left, right = rows.chunk(2, dim=1)
        volume = 0.0
        for coupling in self.couplings:
            right, change = coupling(left, right)
            volume = volume + change
            left, right = right, left
        squares = left.square().sum(1) + right.square().sum(1)
        return volume - 0.5 * squares - self.constant


def shuffled(table, size):
    for rows in torch.randperm(len(table)).split(size):
        yield table[rows]


def main():
    table = catalogue()
    held_out, training = table[:4000], table[4000:]
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    start = time.perf_counter()
    for epoch in range(7):
        for rows in shuffled(training, BATCH):
            loss = -flow.log_prob(rows).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
        with torch.inference_mode():
            score = flow.log_prob(held_out).mean().item()
        print(f"epoch {epoch}: held-out log likelihood {score:.3f}")
    print(f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
