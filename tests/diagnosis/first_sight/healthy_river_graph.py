# SPDX-License-Identifier: Apache-2.0
"""Water levels in a river network: messages run along a sparse matrix that is normalised once.

Source: written for this set
"""

import torch
from torch import nn

GAUGES = 5000
NEAR = 4
DAYS = 12
WIDTH = 96
STEPS = 16


def river_network(generator):
    """Each gauge drains into others further down; symmetric, with self-loops, scaled by degree."""
    source = torch.arange(GAUGES).repeat_interleave(NEAR)
    target = (source + torch.randint(1, 60, (len(source),), generator=generator)).clamp(max=GAUGES - 1)
    loops = torch.arange(GAUGES)
    row = torch.cat([source, target, loops])
    column = torch.cat([target, source, loops])
    links = torch.sparse_coo_tensor(torch.stack([row, column]), torch.ones(len(row)), (GAUGES, GAUGES))
    links = links.coalesce()
    row, column = links.indices()
    degree = torch.zeros(GAUGES).index_add_(0, row, links.values())
    value = links.values() / (degree[row] * degree[column]).sqrt()
    return torch.sparse_coo_tensor(links.indices(), value, (GAUGES, GAUGES)).to_sparse_csr()


class Spread(torch.autograd.Function):
    """Product with the network, whose matrix is symmetric and constant."""

    @staticmethod
    def forward(ctx, network, x):
        ctx.network = network
        return network @ x

    @staticmethod
    def backward(ctx, grad):
        return None, ctx.network @ grad


class RiverNet(nn.Module):
    """Past levels of all gauges to those of tomorrow."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.first = nn.Linear(DAYS, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.third = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, past):
        x = torch.relu(self.first(past))
        x = x + torch.relu(Spread.apply(self.network, self.second(x)))
        x = x + torch.relu(Spread.apply(self.network, self.third(x)))
        return past[:, -1] + self.last(x).squeeze(-1)


def levels(network, generator):
    """Rain that wanders down the network for some weeks."""
    level = torch.randn(GAUGES, generator=generator)
    days = []
    for _ in range(DAYS + STEPS):
        rain = (torch.rand(GAUGES, generator=generator) < 0.05).float()
        level = 0.9 * (network @ level[:, None]).squeeze(1) + rain
        days.append(level)
    return torch.stack(days, dim=1)


def main():
    generator = torch.Generator().manual_seed(113)
    torch.manual_seed(113)
    network = river_network(generator)
    level = levels(network, generator)
    model = RiverNet(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    for day in range(STEPS):
        predicted = model(level[:, day : day + DAYS])
        loss = nn.functional.smooth_l1_loss(predicted, level[:, day + DAYS])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"river: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
