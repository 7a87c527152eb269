# SPDX-License-Identifier: Apache-2.0
"""A GAN, trained."""

import torch
from torch import nn

RULE = None


def build(fixed):
    g = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh())
    d = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
    og, od = torch.optim.Adam(g.parameters(), 2e-4, fused=True), torch.optim.Adam(d.parameters(), 2e-4, fused=True)
    real = torch.rand(64, 784) * 2 - 1
    bce = nn.functional.binary_cross_entropy_with_logits

    def step():
        fake = g(torch.randn(64, 32))
        loss = bce(d(real), torch.ones(64, 1)) + bce(d(fake.detach()), torch.zeros(64, 1))
        od.zero_grad()
        loss.backward()
        od.step()
        og.zero_grad()
        bce(d(fake), torch.ones(64, 1)).backward()
        og.step()

    return step
