# SPDX-License-Identifier: Apache-2.0
"""Batches that go through lists of Python's numbers."""

import torch
from torch import nn

RULE = ("python-in-step", "tensor-from-list", "synchronising-calls")


def build(fixed):
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    x = torch.randn(64, 256)
    numbers = x.tolist()

    def step():
        batch = x.clone() if fixed else torch.tensor(numbers)  # planted
        model(batch).square().mean().backward()
        model.zero_grad()

    return step
