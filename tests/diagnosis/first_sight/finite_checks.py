# SPDX-License-Identifier: Apache-2.0
"""Turbulence surrogate: every gradient is checked for NaN in each step, one at a time.

Source: PyTorch tuning guide (avoid unnecessary synchronisation, disable debugging); clip_grad_norm_ has one check for all.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(x)


def check(model):
    for name, parameter in model.named_parameters():
        if torch.isnan(parameter.grad).any() or torch.isinf(parameter.grad).any():  # planted
            raise FloatingPointError(name)


model = nn.Sequential(nn.Linear(12, 96), *[Block(96) for _ in range(16)], nn.Linear(96, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
for step in range(25):
    cells, stress = torch.randn(16, 12), torch.randn(16, 3)
    loss = nn.functional.mse_loss(model(cells), stress)
    optimizer.zero_grad()
    loss.backward()
    check(model)
    optimizer.step()
