# SPDX-License-Identifier: Apache-2.0
"""Adversarial generation of small glyph images (hinge loss, convolutional)."""

import torch
import torch.nn.functional as F
from torch import nn

LATENT, BATCH, ITERATIONS = 64, 48, 40


def generator_net(width=64):
    return nn.Sequential(
        nn.ConvTranspose2d(LATENT, width * 2, 4, bias=False),
        nn.BatchNorm2d(width * 2),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(width * 2, width * 2, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width * 2),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(width, 1, 4, 2, 1),
        nn.Tanh(),
    )


def critic_net(width=32):
    return nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width * 2),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width * 2, width * 2, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width * 2),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width * 2, 1, 4),
    )


def draw_glyphs(count, rng):
    """Random thick ellipses on a 32x32 canvas, in [-1, 1]."""
    axis = torch.linspace(-1, 1, 32)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    center = (torch.rand(count, 2, 1, 1, generator=rng) - 0.5) * 0.6
    radius = 0.3 + 0.4 * torch.rand(count, 2, 1, 1, generator=rng)
    level = ((xx - center[:, 0]) / radius[:, 0]) ** 2 + ((yy - center[:, 1]) / radius[:, 1]) ** 2
    ink = torch.exp(-8 * (level - 1) ** 2)
    return (2 * ink - 1).unsqueeze(1)


def main():
    torch.manual_seed(8)
    rng = torch.Generator().manual_seed(9)
    glyphs = draw_glyphs(2048, rng)
    painter, critic = generator_net(), critic_net()
    painter_opt = torch.optim.Adam(painter.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)

    for iteration in range(1, ITERATIONS + 1):
        real = glyphs[torch.randint(0, len(glyphs), (BATCH,), generator=rng)]
        fake = painter(torch.randn(BATCH, LATENT, 1, 1, generator=rng))
        real_score, fake_score = critic(real), critic(fake)  # planted
        critic_loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        critic.requires_grad_(False)
        painter_loss = -critic(painter(torch.randn(BATCH, LATENT, 1, 1, generator=rng))).mean()
        painter_opt.zero_grad()
        painter_loss.backward()
        painter_opt.step()
        critic.requires_grad_(True)

        if iteration % 10 == 0:
            print(f"{iteration:4d}  critic {critic_loss.item():.4f}  painter {painter_loss.item():.4f}")


if __name__ == "__main__":
    main()
