# SPDX-License-Identifier: Apache-2.0
"""A layer normalisation that is written out in single operators."""

import torch
from torch import nn

RULE = "formula-by-hand"


class Norm(nn.Module):
    def __init__(self, width, fixed):
        super().__init__()
        self.weight, self.bias, self.fixed = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), fixed

    def forward(self, x):
        if self.fixed:
            return nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias)
        centered = x - x.mean(-1, keepdim=True)  # planted
        scale = torch.rsqrt((centered * centered).mean(-1, keepdim=True) + 1e-5)  # planted
        return self.weight * (centered * scale) + self.bias  # planted


def build(fixed):
    model = nn.Sequential(
        nn.Linear(64, 192), Norm(192, fixed), nn.ReLU(), nn.Linear(192, 192), Norm(192, fixed), nn.Linear(192, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        loss = model(torch.randn(2048, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
