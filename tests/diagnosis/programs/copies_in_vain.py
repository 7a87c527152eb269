# SPDX-License-Identifier: Apache-2.0
"""Activations are copied, although neither the copies nor the originals change."""

import torch
from torch import nn

RULE = "unneeded-copy"


def build(fixed):
    layers = nn.ModuleList(nn.Conv2d(8, 8, 1) for _ in range(4))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)

    def step():
        x = torch.randn(8, 8, 64, 64)
        for layer in layers:
            kept = x if fixed else x.clone()  # planted
            x = layer(x).relu() + kept
        optimizer.zero_grad()
        x.square().mean().backward()
        optimizer.step()

    return step
