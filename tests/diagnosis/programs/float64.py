# SPDX-License-Identifier: Apache-2.0
"""A model in double precision, after its data."""

import torch
from torch import nn

RULE = "float64"


def build(fixed):
    dtype = torch.float32 if fixed else torch.float64
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to(dtype)
    x = torch.randn(512, 256, dtype=dtype)

    def step():
        model(x).square().mean().backward()  # planted
        model.zero_grad()

    return step
