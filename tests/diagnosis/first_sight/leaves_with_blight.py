# SPDX-License-Identifier: Apache-2.0
"""Leaves with blight: every photo is turned and blurred, and the result is kept for one in six.

Source: https://github.com/kornia/kornia/pull/3844, https://github.com/kornia/kornia/issues/765
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def turn(photos, angles):
    """Turns each photo by its angle about the centre."""
    cos, sin = angles.cos(), angles.sin()
    zero = torch.zeros_like(cos)
    matrices = torch.stack([torch.stack([cos, -sin, zero], 1), torch.stack([sin, cos, zero], 1)], 1)
    grid = F.affine_grid(matrices, list(photos.shape), align_corners=False)
    return F.grid_sample(photos, grid, padding_mode="reflection", align_corners=False)


def defocus(photos, radius=2):
    """Blurs photos by a filter along the rows, then along the columns."""
    line = torch.exp(-torch.arange(-radius, radius + 1).float().square() / 4)
    line = (line / line.sum()).expand(photos.shape[1], 1, 1, -1)
    photos = F.conv2d(F.pad(photos, (radius, radius, 0, 0), mode="reflect"), line, groups=photos.shape[1])
    photos = F.pad(photos, (0, 0, radius, radius), mode="reflect")
    return F.conv2d(photos, line.transpose(2, 3), groups=photos.shape[1])


class Augment:
    """Turns and blurs a random sixth of the photos of a batch."""

    def __init__(self, share=1 / 6, degrees=40):
        self.share, self.radians = share, math.radians(degrees)

    def __call__(self, photos):
        chosen = torch.rand(len(photos)) < self.share
        angles = (torch.rand(len(photos)) * 2 - 1) * self.radians
        changed = defocus(turn(photos, angles))  # planted
        return torch.where(chosen.view(-1, 1, 1, 1), changed, photos)


class Doctor(nn.Module):
    def __init__(self, width=24, diseases=5):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=4),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, diseases),
        )

    def forward(self, photos):
        return self.layers(photos)


photos, labels = torch.rand(240, 3, 112, 112), torch.randint(5, (240,))
augment, model = Augment(), Doctor()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(20):
    rows = torch.randint(len(photos), (32,))
    loss = F.cross_entropy(model(augment(photos[rows])), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
