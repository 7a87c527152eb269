# SPDX-License-Identifier: Apache-2.0
"""Particle showers: the critic's loss goes back through the generator, whose gradients are then discarded.

Source: pytorch/examples issue 116 ("why is detach necessary"), merged udacity/deep-learning-v2-pytorch pull request 306.
"""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(
    nn.ConvTranspose2d(64, 128, 4),
    nn.BatchNorm2d(128),
    nn.ReLU(),
    nn.ConvTranspose2d(128, 64, 4, stride=2, padding=1),
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Conv2d(32, 1, 3, padding=1),
    nn.Softplus(),
)
critic = nn.Sequential(
    nn.Conv2d(1, 16, 4, stride=2, padding=1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(16, 32, 4, stride=2, padding=1),
    nn.LeakyReLU(0.2),
    nn.Flatten(),
    nn.Linear(32 * 16, 1),
)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real, fake = torch.ones(96, 1), torch.zeros(96, 1)

for step in range(20):
    showers = torch.rand(96, 1, 16, 16).pow(4)

    critic_optimizer.zero_grad()
    made = generator(torch.randn(96, 64, 1, 1))
    critic_loss = criterion(critic(showers), real) + criterion(critic(made), fake)  # planted
    critic_loss.backward()  # planted
    critic_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = criterion(critic(generator(torch.randn(96, 64, 1, 1))), real)
    generator_loss.backward()
    generator_optimizer.step()
