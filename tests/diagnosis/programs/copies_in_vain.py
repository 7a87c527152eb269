# SPDX-License-Identifier: Apache-2.0
"""Activations are copied, although neither the copies nor the originals change."""

import torch
from torch import nn

RULE = "unneeded-copy"


def build(fixed):
    scales = nn.ParameterList(torch.ones(1024) for _ in range(4))
    optimizer = torch.optim.SGD(scales, lr=0.01)
    rows = torch.randn(1024, 1024)

    def step():
        x = rows + 1
        for scale in scales:
            kept = x if fixed else x.clone()  # planted
            x = (x if fixed else x.clone()) * scale + kept  # planted
        optimizer.zero_grad()
        x.mean().backward()
        optimizer.step()

    return step
