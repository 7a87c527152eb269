# SPDX-License-Identifier: Apache-2.0
"""Adam over hundreds of small parameters, one by one."""

import torch
from torch import nn

RULE = "optimizer-loop"


def build(fixed):
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(100)])
    optimizer = torch.optim.Adam(model.parameters(), fused=fixed, foreach=False)
    x = torch.randn(8, 32)

    def step():
        model(x).sum().backward()
        optimizer.step()  # planted
        optimizer.zero_grad()

    return step
