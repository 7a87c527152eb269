# SPDX-License-Identifier: Apache-2.0
"""Noise by numpy in float64 that makes the model's input double."""

import numpy as np
import torch
from torch import nn

RULE = ("float64", "type-conversions", "python-in-step")


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 128))
    model = model if fixed else model.double()
    base = np.random.rand(256, 128)
    x = torch.from_numpy(base)
    x = x.float() if fixed else x
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        loss = (model(x) - x).pow(2).mean()  # planted
        optimizer.zero_grad()
        loss.backward()  # planted
        optimizer.step()

    return step
