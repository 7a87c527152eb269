# SPDX-License-Identifier: Apache-2.0
"""A metric that is computed on lists of numbers."""

import torch
from torch import nn

RULE = "python-in-step"


def edit_distance(a, b):
    before = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (x != y)))  # planted
        before = row
    return before[-1]


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
    x = torch.randn(64, 128)
    a, b = list(range(60)), list(range(30, 90))

    def step():
        model(x).mean().backward()
        model.zero_grad()
        if not fixed:
            edit_distance(a, b)

    return step
