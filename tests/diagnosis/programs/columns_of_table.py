# SPDX-License-Identifier: Apache-2.0
"""Samples are the columns of a table, so that a batch takes elements from all rows."""

import torch
from torch import nn

RULE = "columns-picked"


def build(fixed):
    table = torch.rand(1000, 6000)
    samples = table.T.contiguous() if fixed else None
    model = nn.Sequential(nn.Linear(1000, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        chosen = torch.randint(6000, (128,))
        batch = samples[chosen] if fixed else table[:, chosen].T  # planted
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
