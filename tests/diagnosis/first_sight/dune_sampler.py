# SPDX-License-Identifier: Apache-2.0
"""Sampling dune height maps from a score model with Heun's method."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(61)

SIDE, WIDTH = 32, 32
SIGMA_MIN, SIGMA_MAX, RHO = 0.01, 40.0, 7.0
DATA_STD = 0.5


class Block(nn.Module):
    def __init__(self, channels, noise_width):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(8, channels)
        self.level = nn.Linear(noise_width, channels)

    def forward(self, x, level):
        h = F.silu(self.first(x) + self.level(level)[:, :, None, None])
        return x + self.second(self.norm(h))


class Denoiser(nn.Module):
    """Preconditioned network D(x, sigma)."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequency", torch.randn(16))
        self.enter = nn.Conv2d(1, WIDTH, 3, padding=1)
        self.fine = nn.ModuleList(Block(WIDTH, 32) for _ in range(2))
        self.down = nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2, padding=1)
        self.coarse = nn.ModuleList(Block(2 * WIDTH, 32) for _ in range(2))
        self.up = nn.ConvTranspose2d(2 * WIDTH, WIDTH, 2, stride=2)
        self.leave = nn.Conv2d(WIDTH, 1, 3, padding=1)

    def network(self, x, level):
        phase = level * self.frequency
        level = torch.cat([phase.sin(), phase.cos()]).expand(len(x), -1)
        fine = self.enter(x)
        for block in self.fine:
            fine = block(fine, level)
        coarse = self.down(fine)
        for block in self.coarse:
            coarse = block(coarse, level)
        return self.leave(F.silu(fine + self.up(coarse)))

    def forward(self, x, sigma):
        total = sigma**2 + DATA_STD**2
        skip, out = DATA_STD**2 / total, sigma * DATA_STD / total**0.5
        correction = self.network(x / total**0.5, torch.tensor(sigma).log().float() / 4)
        return skip * x + out * correction


def noise_levels(count):
    """Levels of Karras et al., in double precision, ending at zero."""
    ramp = torch.linspace(0, 1, count, dtype=torch.float64)
    high, low = SIGMA_MAX ** (1 / RHO), SIGMA_MIN ** (1 / RHO)
    return ((high + ramp * (low - high)) ** RHO).tolist() + [0.0]


@torch.inference_mode()
def sample(denoiser, count, steps):
    levels = noise_levels(steps)
    x = torch.randn(count, 1, SIDE, SIDE) * levels[0]
    for now, after in zip(levels[:-1], levels[1:]):
        slope = (x - denoiser(x, now)) / now
        euler = x + (after - now) * slope
        if after > 0:
            corrected = (euler - denoiser(euler, after)) / after
            euler = x + (after - now) * 0.5 * (slope + corrected)
        x = euler
    return x


def roughness(maps):
    return float((maps[..., 1:] - maps[..., :-1]).abs().mean())


def main():
    denoiser = Denoiser().eval().to(memory_format=torch.channels_last)
    began = time.perf_counter()
    for batch in range(8):
        maps = sample(denoiser, count=12, steps=16)
        print(f"batch {batch}: std {maps.std():.4f}, roughness {roughness(maps):.4f}")
    seconds = time.perf_counter() - began
    print(f"{seconds / 96:.3f} s per height map")


if __name__ == "__main__":
    main()
