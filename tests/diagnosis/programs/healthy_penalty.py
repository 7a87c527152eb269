# SPDX-License-Identifier: Apache-2.0
"""A Wasserstein GAN whose gradient penalty goes through its critic twice, as it has to: nothing to fix."""

import torch
from torch import nn

RULE = None


class WGAN:
    def __init__(self):
        self.g = nn.Sequential(nn.Linear(32, 192), nn.ReLU(), nn.Linear(192, 64))
        self.d = nn.Sequential(nn.Linear(64, 192), nn.Softplus(), nn.Linear(192, 1))
        self.g_optimizer = torch.optim.Adam(self.g.parameters(), fused=True)
        self.d_optimizer = torch.optim.Adam(self.d.parameters(), fused=True)

    def penalty(self, real, fake):
        mixed = torch.lerp(real, fake, torch.rand(len(real), 1)).requires_grad_()
        (slope,) = torch.autograd.grad(self.d(mixed).sum(), mixed, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()

    def step(self):
        real = torch.randn(128, 64)
        with torch.no_grad():
            fake = self.g(torch.randn(128, 32))
        loss = self.d(fake).mean() - self.d(real).mean() + 10 * self.penalty(real, fake)
        self.d_optimizer.zero_grad()
        loss.backward()
        self.d_optimizer.step()
        loss = -self.d(self.g(torch.randn(128, 32))).mean()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()


def build(fixed):
    return WGAN().step
