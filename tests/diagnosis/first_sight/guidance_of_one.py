# SPDX-License-Identifier: Apache-2.0
"""Samples digits by diffusion with a guidance of 1: the unconditional prediction is multiplied by zero.

Source: lucidrains/denoising-diffusion-pytorch, whose guided forward returns early for a scale of 1 (issue 199), and
diffusers, which guides only for a scale above 1.
"""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Sampling:
    images: int = 24
    steps: int = 16
    guidance: float = 1.0
    eta: float = 0.3


class Block(nn.Module):
    def __init__(self, inputs, outputs, told):
        super().__init__()
        self.convolve = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.normalise = nn.GroupNorm(8, outputs)
        self.shift = nn.Linear(told, outputs)

    def forward(self, images, told):
        return nn.functional.silu(self.normalise(self.convolve(images)) + self.shift(told)[:, :, None, None])


class Denoiser(nn.Module):
    def __init__(self, width=48, told=64, labels=10):
        super().__init__()
        self.moment = nn.Sequential(nn.Linear(1, told), nn.SiLU(), nn.Linear(told, told))
        self.label = nn.Embedding(labels + 1, told)
        self.nothing = labels
        self.down = nn.ModuleList([Block(1, width, told), Block(width, 2 * width, told)])
        self.middle = Block(2 * width, 2 * width, told)
        self.up = nn.ModuleList([Block(4 * width, width, told), Block(2 * width, width, told)])
        self.leave = nn.Conv2d(width, 1, 1)

    def forward(self, images, moment, labels):
        told = self.moment(moment[:, None]) + self.label(labels)
        kept = []
        for block in self.down:
            images = block(images, told)
            kept.append(images)
            images = nn.functional.avg_pool2d(images, 2)
        images = self.middle(images, told)
        for block in self.up:
            images = nn.functional.interpolate(images, scale_factor=2)
            images = block(torch.cat([images, kept.pop()], dim=1), told)
        return self.leave(images)

    def guided(self, images, moment, labels, guidance):
        given = self(images, moment, labels)
        blank = self(images, moment, torch.full_like(labels, self.nothing))  # planted
        return blank + guidance * (given - blank)


torch.manual_seed(0)
options = Sampling()
denoiser = Denoiser().eval()
labels = torch.arange(options.images) % 10
kept = torch.linspace(0.01, 0.999, options.steps + 1)
images = torch.randn(options.images, 1, 32, 32)
with torch.inference_mode():
    for step in range(options.steps):
        now, following = kept[step], kept[step + 1]
        noise = denoiser.guided(images, now.expand(options.images), labels, options.guidance)
        clean = (images - (1 - now).sqrt() * noise) / now.sqrt()
        spread = options.eta * ((1 - following) / (1 - now) * (1 - now / following)).clamp(min=0).sqrt()
        direction = (1 - following - spread**2).clamp(min=0).sqrt() * noise
        images = following.sqrt() * clean.clamp(-1, 1) + direction + spread * torch.randn_like(images)
