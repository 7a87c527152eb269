# SPDX-License-Identifier: Apache-2.0
"""A penalty on all weights in the loss, which an optimizer can add as it updates."""

import torch
from torch import nn

RULE = "penalty-in-loss"


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=2e-3 if fixed else 0)

    def step():
        loss = model(torch.randn(48, 128)).square().mean()
        if not fixed:
            loss = loss + 1e-3 * sum((weight * weight).sum() for weight in model.parameters())  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
