# SPDX-License-Identifier: Apache-2.0
"""Defects on parts: maps of defects are blurred by one square filter, where two of one row and one column do.

Source: https://github.com/open-edge-platform/anomalib/issues/3780, https://github.com/pytorch/vision/issues/7413
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU())
        self.high = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU())

    def forward(self, images):
        low = self.low(images)
        high = self.high(low)
        return torch.cat([low, F.interpolate(high, size=low.shape[-2:])], dim=1)


def gaussian(sigma, radius):
    at = torch.arange(-radius, radius + 1.0)
    weights = torch.exp(-0.5 * (at / sigma).square())
    return weights / weights.sum()


class Blur(nn.Module):
    def __init__(self, sigma=4.0, radius=12):
        super().__init__()
        self.radius = radius
        self.register_buffer("row", gaussian(sigma, radius))

    def forward(self, maps):
        padded = F.pad(maps, [self.radius] * 4, mode="reflect")
        square = torch.outer(self.row, self.row)
        return F.conv2d(padded, square[None, None])  # planted


class Inspector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.blur = Features(), Blur()
        self.register_buffer("mean", torch.zeros(1, 48, 1, 1))

    @torch.no_grad()
    def learn(self, good):
        self.mean.copy_(self.features(good).mean(dim=(0, 2, 3), keepdim=True))

    def forward(self, images):
        distance = (self.features(images) - self.mean).square().sum(1, keepdim=True).sqrt()
        full = F.interpolate(distance, size=images.shape[-2:], mode="bilinear")
        return self.blur(full)


inspector = Inspector().eval()
inspector.learn(torch.rand(8, 3, 160, 160))
rejected = 0
with torch.inference_mode():
    for parts in (torch.rand(4, 3, 160, 160) for _ in range(24)):
        rejected += int((inspector(parts).amax(dim=(1, 2, 3)) > 1.0).sum())
print(f"{rejected} parts rejected")
