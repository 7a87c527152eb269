# SPDX-License-Identifier: Apache-2.0
"""Generates tables with a Wasserstein GAN, whose gradient penalty needs gradients of gradients."""

import torch
from torch import nn

COLUMNS, NOISE, BATCH = 40, 32, 500
torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(NOISE, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, COLUMNS))
critic = nn.Sequential(
    nn.Linear(COLUMNS, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.9))
table = torch.randn(20_000, COLUMNS) @ torch.randn(COLUMNS, COLUMNS) / COLUMNS**0.5


def slope_penalty(real, made):
    weight = torch.rand(len(real), 1)
    between = (weight * real + (1 - weight) * made).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def train_critic():
    real = table[torch.randint(0, len(table), (BATCH,))]
    with torch.no_grad():
        made = generator(torch.randn(BATCH, NOISE))
    loss = critic(made).mean() - critic(real).mean() + 10 * slope_penalty(real, made)
    critic_optimizer.zero_grad()
    loss.backward()
    critic_optimizer.step()


def train_generator():
    critic.requires_grad_(False)
    loss = -critic(generator(torch.randn(BATCH, NOISE))).mean()
    generator_optimizer.zero_grad()
    loss.backward()
    generator_optimizer.step()
    critic.requires_grad_(True)


for step in range(16):
    for _ in range(4):
        train_critic()
    train_generator()
