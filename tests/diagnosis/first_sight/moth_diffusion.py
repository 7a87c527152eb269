# SPDX-License-Identifier: Apache-2.0
"""Generative vision: a denoising diffusion model learns to draw moths.

Moths are pairs of mirrored wings with spots. A small U-shaped network predicts the noise, a moving average of
its weights is kept for drawing, and a few pictures are drawn at the end by a deterministic sampler.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(61)

SIDE, LEVELS, BATCH, STEPS = 32, 200, 16, 22


def draw_moths(count):
    axis = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    x = x.abs()
    u = torch.rand(8, count, 1, 1, 1)
    wing = (((x - 0.4) / (0.25 + 0.2 * u[0])) ** 2 + ((y + 0.2) / (0.3 + 0.3 * u[1])) ** 2 < 1).float()
    lower = (((x - 0.3) / (0.2 + 0.1 * u[2])) ** 2 + ((y - 0.5) / (0.2 + 0.2 * u[3])) ** 2 < 1).float()
    spot = (((x - 0.45) ** 2 + (y + 0.2) ** 2) < 0.01 + 0.03 * u[4]).float()
    shape = torch.maximum(wing, lower)
    colour = torch.rand(count, 3, 1, 1)
    return (2 * (shape * colour * (1 - 0.8 * spot)) - 1).contiguous()


class ResidualBlock(nn.Module):
    def __init__(self, width, time):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
        self.time = nn.Linear(time, width)

    def forward(self, x, time):
        h = self.first(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return x + self.second(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, width=64, time=128):
        super().__init__()
        self.frequency = nn.Buffer(torch.exp(-math.log(1e4) * torch.arange(32) / 32))
        self.time = nn.Sequential(nn.Linear(64, time), nn.SiLU())
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.top = ResidualBlock(width, time)
        self.down = nn.Conv2d(width, 2 * width, 2, 2)
        self.deep = nn.ModuleList(ResidualBlock(2 * width, time) for _ in range(2))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.leave = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x, level):
        angle = level[:, None] * self.frequency
        time = self.time(torch.cat([angle.sin(), angle.cos()], dim=1))
        top = self.top(self.enter(x), time)
        deep = self.down(top)
        for block in self.deep:
            deep = block(deep, time)
        return self.leave(top + self.up(deep))


class Schedule:
    def __init__(self):
        beta = torch.linspace(1e-4, 0.04, LEVELS)
        self.keep = torch.cumprod(1 - beta, dim=0)

    def disturb(self, picture, noise, level):
        keep = self.keep[level].view(-1, 1, 1, 1)
        return keep.sqrt() * picture + (1 - keep).sqrt() * noise

    @torch.inference_mode()
    def draw(self, model, count, jumps=6):
        x = torch.randn(count, 3, SIDE, SIDE)
        levels = torch.linspace(LEVELS - 1, 0, jumps).long().tolist()
        for now, after in zip(levels, levels[1:]):
            noise = model(x, torch.full((count,), float(now)))
            clean = (x - (1 - self.keep[now]).sqrt() * noise) / self.keep[now].sqrt()
            x = self.keep[after].sqrt() * clean.clamp(-1, 1) + (1 - self.keep[after]).sqrt() * noise
        return x


def main():
    schedule, model = Schedule(), Denoiser()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pairs = list(average.parameters()), [p.detach() for p in model.parameters()]
    losses = []
    for step in range(STEPS):
        picture, level = draw_moths(BATCH), torch.randint(0, LEVELS, (BATCH,))
        noise = torch.randn_like(picture)
        loss = F.mse_loss(model(schedule.disturb(picture, noise, level), level.float()), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch._foreach_lerp_(*pairs, 0.05)
        losses.append(loss.item())
    drawn = schedule.draw(average.eval(), 4)
    print(f"loss {losses[0]:.3f} {sum(losses[-5:]) / 5:.3f} drawn {drawn.abs().mean().item():.2f}")


if __name__ == "__main__":
    main()
