# SPDX-License-Identifier: Apache-2.0
"""Rows normalised one by one, with a backward pass through it."""

import torch
from torch import nn

RULE = "python-loop-over-rows"


def build(fixed):
    model = nn.Linear(32, 64)
    x = torch.randn(200, 32)

    def step():
        hidden = model(x)
        if fixed:
            out = hidden / hidden.norm(dim=1, keepdim=True)
        else:
            rows = []
            for i in range(hidden.shape[0]):
                rows.append(hidden[i] / hidden[i].norm())  # planted
            out = torch.stack(rows)
        out.square().mean().backward()
        model.zero_grad()

    return step
