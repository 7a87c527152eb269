# SPDX-License-Identifier: Apache-2.0
"""Segmentation of lesions in fundus photographs with a residual network."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(31)

SIDE = 64
CHANNELS = 32
BATCH = 8
STEPS = 60


class Photographs:
    """Endless stream of synthetic photographs with bright round lesions."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        axis = torch.arange(SIDE, dtype=torch.float)
        self.y, self.x = torch.meshgrid(axis, axis, indexing="ij")

    def __iter__(self):
        while True:
            yield self.batch()

    def batch(self):
        g = self.generator
        center = torch.rand(BATCH, 4, 2, 1, 1, generator=g) * SIDE
        radius = 2 + 4 * torch.rand(BATCH, 4, 1, 1, generator=g)
        distance = (self.y - center[:, :, 0]) ** 2 + (self.x - center[:, :, 1]) ** 2
        mask = (distance < radius**2).any(dim=1, keepdim=True).float()
        tint = torch.rand(BATCH, 3, 1, 1, generator=g)
        noise = 0.4 * torch.randn(BATCH, 3, SIDE, SIDE, generator=g)
        return tint + 0.5 * mask + noise, mask


class ResidualBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=dilation, dilation=dilation),
            nn.GroupNorm(8, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(8, channels),
        )

    def forward(self, x):
        return F.relu(x + self.body(x))


class LesionNet(nn.Module):
    def __init__(self, depth=6, recompute=False):
        super().__init__()
        self.recompute = recompute
        self.stem = nn.Conv2d(3, CHANNELS, 5, stride=2, padding=2)
        self.blocks = nn.ModuleList(ResidualBlock(CHANNELS, 1 + index % 3) for index in range(depth))
        self.head = nn.Sequential(nn.Conv2d(CHANNELS, 4, 1), nn.PixelShuffle(2))

    def forward(self, image):
        x = F.relu(self.stem(image))
        for block in self.blocks:
            if self.recompute and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(x)


def dice_loss(logits, mask):
    chance = torch.sigmoid(logits)
    overlap = (chance * mask).sum(dim=(1, 2, 3))
    size = chance.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
    return (1 - (2 * overlap + 1) / (size + 1)).mean()


def train(model, stream):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS)
    for step, (image, mask) in zip(range(STEPS), stream):
        logits = model(image)
        loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 15 == 14:
            print(f"step {step + 1}: loss {loss.item():.3f}")


def main():
    model = LesionNet(recompute=True)  # planted
    model.train()
    started = time.perf_counter()
    train(model, Photographs(seed=5))
    finished = time.perf_counter()
    model.eval()
    with torch.inference_mode():
        image, mask = Photographs(seed=6).batch()
        print(f"test dice {1 - dice_loss(model(image), mask).item():.3f}")
    print(f"{(finished - started) / STEPS * 1e3:.0f} ms per step")


if __name__ == "__main__":
    main()
