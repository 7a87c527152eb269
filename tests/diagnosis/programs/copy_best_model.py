# SPDX-License-Identifier: Apache-2.0
"""The best model so far copied each step."""

import copy

import torch
from torch import nn

RULE = "checkpoint-in-step"


class Run:
    def __init__(self, fixed):
        self.fixed = fixed
        self.model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.x = torch.randn(32, 128)
        self.best = None

    def step(self):
        loss = (self.model(self.x) - self.x).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if not self.fixed:
            self.best = copy.deepcopy(self.model.state_dict())  # planted


def build(fixed):
    return Run(fixed).step
