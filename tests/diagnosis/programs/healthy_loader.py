# SPDX-License-Identifier: Apache-2.0
"""Batches from workers that are ready when they are needed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RULE = None


def build(fixed):
    # Work enough that the worker keeps up on a busy machine.
    model = nn.Sequential(nn.Linear(256, 8192), nn.ReLU(), nn.Linear(8192, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(8192, 256)), batch_size=128, num_workers=1, persistent_workers=True)
    batches = iter(loader)

    def step():
        (x,) = next(batches)
        (model(x) - x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
