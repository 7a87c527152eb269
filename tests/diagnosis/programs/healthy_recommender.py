# SPDX-License-Identifier: Apache-2.0
"""A recommender: embedding bags with sparse gradients, and a small network on top."""

import torch
from torch import nn

RULE = None


def build(fixed):
    bags = nn.ModuleList(nn.EmbeddingBag(20_000, 16, mode="sum", sparse=True) for _ in range(4))
    top = nn.Sequential(nn.Linear(64 + 13, 128), nn.ReLU(), nn.Linear(128, 1))
    sparse, dense = torch.optim.SGD(bags.parameters(), lr=0.1), torch.optim.Adam(top.parameters(), fused=True)

    def step():
        ids = torch.randint(0, 20_000, (4, 256, 8))
        x, y = torch.randn(256, 13), torch.randint(0, 2, (256,)).float()
        hidden = torch.cat([x, *(bag(part) for bag, part in zip(bags, ids.unbind()))], 1)
        loss = nn.functional.binary_cross_entropy_with_logits(top(hidden)[:, 0], y)
        loss.backward()
        sparse.step()
        dense.step()
        sparse.zero_grad()
        dense.zero_grad()

    return step
