# SPDX-License-Identifier: Apache-2.0
"""A step that polls with a sleep."""

import time

import torch
from torch import nn

RULE = "waiting-in-step"
WAITS = True


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
    x = torch.randn(64, 128)

    def step():
        model(x).mean().backward()
        model.zero_grad()
        if not fixed:
            time.sleep(0.002)  # planted

    return step
