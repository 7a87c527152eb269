# SPDX-License-Identifier: Apache-2.0
"""Unconditional GAN for woven-fabric texture tiles (32x32, grey)."""

import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LATENT = 64
BATCH = 48


class TileGenerator(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.project = nn.Linear(LATENT, width * 4 * 8 * 8)
        self.body = nn.Sequential(
            nn.Conv2d(width * 4, width * 2, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(width * 2, width, 3, padding=1),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(width, 1, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.body(self.project(z).view(len(z), -1, 8, 8))


class TileCritic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, width * 2, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width * 2, width * 4, 4, 2, 1),
            nn.LeakyReLU(0.2),
        )
        self.score = nn.Linear(width * 4 * 4 * 4, 1)

    def forward(self, tiles):
        return self.score(self.features(tiles).flatten(1)).squeeze(1)


def weave(count, size=32):
    """Synthetic fabric: two crossed gratings with random pitch and phase."""
    grid = torch.arange(size, dtype=torch.float32)
    pitch = 0.4 + 1.2 * torch.rand(count, 2, 1)
    phase = 2 * math.pi * torch.rand(count, 2, 1)
    waves = torch.sin(pitch * grid + phase)
    tiles = waves[:, 0, :, None] * waves[:, 1, None, :]
    return (tiles + 0.1 * torch.randn_like(tiles)).clamp(-1, 1).unsqueeze(1)


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def train(rounds=32):
    torch.manual_seed(7)
    fabric = weave(4096)
    generator, critic = TileGenerator(), TileCritic()
    opt_g = torch.optim.Adam(generator.parameters(), 2e-4, betas=(0.5, 0.99), fused=True)
    opt_c = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.99), fused=True)

    start = time.perf_counter()
    for step in range(rounds):
        real = fabric[torch.randint(len(fabric), (BATCH,))]
        fake = generator(torch.randn(BATCH, LATENT))

        set_trainable(critic, True)
        opt_c.zero_grad()
        loss_c = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()  # planted
        loss_c.backward(retain_graph=True)  # planted
        opt_c.step()

        set_trainable(critic, False)
        opt_g.zero_grad()
        loss_g = F.softplus(-critic(fake)).mean()
        loss_g.backward()
        opt_g.step()

        if step % 8 == 7:
            print(f"step {step + 1}: critic {loss_c.item():.4f} generator {loss_g.item():.4f}")
    print(f"{rounds} rounds in {time.perf_counter() - start:.1f} s")
    return generator


if __name__ == "__main__":
    net = train()
    with torch.inference_mode():
        sample = net(torch.randn(16, LATENT))
    print("sample contrast", round(sample.std().item(), 4))
