# SPDX-License-Identifier: Apache-2.0
"""A discriminator's loss that goes back through the generator, since its images are not detached."""

import torch
from torch import nn
from torch.nn.functional import softplus

RULE = "retained-graph"


class GAN:
    def __init__(self, fixed):
        self.fixed = fixed
        self.g = nn.Sequential(nn.Linear(64, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 32))
        self.d = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(), nn.Linear(64, 1))
        self.g_optimizer = torch.optim.SGD(self.g.parameters(), lr=1e-3)
        self.d_optimizer = torch.optim.SGD(self.d.parameters(), lr=1e-3)

    def train_discriminator(self, fake):
        self.d_optimizer.zero_grad()
        loss = softplus(-self.d(torch.randn(128, 32))).mean() + softplus(self.d(fake)).mean()
        loss.backward(retain_graph=not self.fixed)  # planted
        self.d_optimizer.step()

    def step(self):
        fake = self.g(torch.randn(128, 64))
        self.train_discriminator(fake.detach() if self.fixed else fake)
        self.g_optimizer.zero_grad()
        softplus(-self.d(fake)).mean().backward()
        self.g_optimizer.step()


def build(fixed):
    return GAN(fixed).step
