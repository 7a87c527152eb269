# SPDX-License-Identifier: Apache-2.0
"""Accuracy counted sample by sample."""

import torch
from torch import nn

RULE = ("python-loop-over-rows", "synchronising-calls")


def build(fixed):
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = torch.randn(256, 64), torch.randint(0, 10, (256,))

    @torch.no_grad()
    def step():
        predicted = model(x).argmax(1)
        if fixed:
            return (predicted == y).sum().item()
        right = 0
        for i in range(len(y)):
            if predicted[i].item() == y[i].item():  # planted
                right += 1
        return right

    return step
