# SPDX-License-Identifier: Apache-2.0
"""A discriminator is trained on pictures of the generator, whose gradients nothing reads."""

import torch
from torch import nn
from torch.nn.functional import softplus

RULE = "unread-gradient"


class GAN:
    def __init__(self, fixed):
        self.fixed = fixed
        self.g = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64))
        self.d = nn.Sequential(nn.Linear(64, 96), nn.LeakyReLU(), nn.Linear(96, 1))
        self.g_optimizer = torch.optim.SGD(self.g.parameters(), lr=1e-3)
        self.d_optimizer = torch.optim.SGD(self.d.parameters(), lr=1e-3)

    def train_discriminator(self):
        fake = self.g(torch.randn(128, 64))  # planted
        if self.fixed:
            fake = fake.detach()
        loss = softplus(-self.d(torch.randn(128, 64))).mean() + softplus(self.d(fake)).mean()
        self.d_optimizer.zero_grad()
        loss.backward()
        self.d_optimizer.step()

    def train_generator(self):
        self.d.requires_grad_(False)
        loss = softplus(-self.d(self.g(torch.randn(128, 64)))).mean()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        self.d.requires_grad_(True)

    def step(self):
        for _ in range(2):
            self.train_discriminator()
        self.train_generator()


def build(fixed):
    return GAN(fixed).step
