# SPDX-License-Identifier: Apache-2.0
"""The garbage collector called each step."""

import gc

import torch
from torch import nn

RULE = "gc-pauses"


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
    x = torch.randn(64, 128)

    def step():
        model(x).mean().backward()
        model.zero_grad()
        if not fixed:
            gc.collect()  # planted

    return step
