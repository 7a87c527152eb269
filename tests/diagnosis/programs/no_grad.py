# SPDX-License-Identifier: Apache-2.0
"""Evaluation with gradients on."""

import torch
from torch import nn

RULE = "autograd-unused"


def build(fixed):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]).eval()
    x = torch.randn(16, 64)

    def step():
        with torch.set_grad_enabled(not fixed):
            return model(x).argmax(1)  # planted

    return step
