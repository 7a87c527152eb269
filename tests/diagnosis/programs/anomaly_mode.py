# SPDX-License-Identifier: Apache-2.0
"""Anomaly detection left on."""

import torch
from torch import nn

RULE = "anomaly-mode"


def build(fixed):
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.ReLU())])
    x = torch.randn(32, 64)

    def step():
        with torch.autograd.set_detect_anomaly(not fixed):  # planted
            loss = model(x).square().mean()
            loss.backward()  # planted
        model.zero_grad()

    return step
