# SPDX-License-Identifier: Apache-2.0
"""Cosines of all pairs on broadcast rows, where a product of normalised rows gives them."""

import torch
from torch import nn
from torch.nn import functional

RULE = "large-intermediate"


def build(fixed):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        rows = model(torch.randn(256, 64))
        if fixed:
            rows = functional.normalize(rows, dim=1)
            close = rows @ rows.T
        else:
            close = functional.cosine_similarity(rows[:, None], rows[None], dim=2)  # planted
        optimizer.zero_grad()
        close.exp().mean().backward()
        optimizer.step()

    return step
