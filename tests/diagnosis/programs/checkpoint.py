# SPDX-License-Identifier: Apache-2.0
"""A checkpoint every step."""

import io

import torch
from torch import nn

RULE = "checkpoint-in-step"


def build(fixed):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 256)

    def step():
        (model(x) - x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if not fixed:
            torch.save(model.state_dict(), io.BytesIO())  # planted

    return step
