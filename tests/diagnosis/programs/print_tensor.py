# SPDX-License-Identifier: Apache-2.0
"""A tensor printed each step."""

import torch
from torch import nn

RULE = ("synchronising-calls", "logging-in-step")


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
    x = torch.randn(64, 128)

    def step():
        out = model(x)
        out.mean().backward()
        model.zero_grad()
        if not fixed:
            print(out[0])  # planted

    return step
