# SPDX-License-Identifier: Apache-2.0
"""Validation during training, with graphs that no backward pass uses."""

import torch
from torch import nn
from torch.nn.functional import gelu, mse_loss

RULE = "autograd-unused"


class Mixer(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.lines = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(depth)])

    def forward(self, x):
        for line, norm in zip(self.lines, self.norms, strict=True):
            x = x + gelu(line(norm(x))) * 0.5
        return x.mean(-1)


class Loop:
    def __init__(self, fixed):
        self.net, self.fixed = Mixer(32, 12), fixed
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3, foreach=True)
        self.x, self.folds = torch.randn(16, 32), torch.randn(6, 16, 32)
        self.targets = self.folds.mean(-1)

    def evaluate(self, fold, target):
        return mse_loss(self.net(fold), target)  # planted

    def step(self):
        self.optimizer.zero_grad()
        mse_loss(self.net(self.x), self.targets[0]).backward()
        self.optimizer.step()
        with torch.set_grad_enabled(not self.fixed):
            scores = [self.evaluate(*fold).detach() for fold in zip(self.folds, self.targets, strict=True)]
        return torch.stack(scores).mean()


def build(fixed):
    return Loop(fixed).step
