# SPDX-License-Identifier: Apache-2.0
"""A forecast of the last position: the layers of the head compute all positions first."""

import torch
from torch import nn

RULE = "late-selection"


def build(fixed):
    encoder = nn.GRU(16, 128, batch_first=True)
    head = nn.Sequential(
        nn.Linear(128, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 64), nn.GELU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.01)
    series, target = torch.randn(64, 48, 16), torch.randn(64, 1)

    def step():
        hidden, _ = encoder(series)
        if fixed:
            forecast = head(hidden[:, -1])
        else:
            forecast = head(hidden)[:, -1]  # planted
        optimizer.zero_grad()
        nn.functional.mse_loss(forecast, target).backward()
        optimizer.step()

    return step
