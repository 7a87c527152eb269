# SPDX-License-Identifier: Apache-2.0
"""Losses kept with their graphs."""

import torch
from torch import nn

RULE = "memory-growth"
GAINS = "memory"


def build(fixed):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    losses = []

    def step():
        x = torch.randn(64, 256)
        loss = (model(x) - x).square().mean()  # planted
        losses.append(loss.detach() if fixed else loss)

    return step
