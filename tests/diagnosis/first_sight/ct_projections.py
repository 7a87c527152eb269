# SPDX-License-Identifier: Apache-2.0
"""Slices from few X-ray views: the projection step also works out a gradient for the scanner's own geometry.

Source: https://github.com/cai4cai/torchsparsegradutils/issues/31, https://docs.pytorch.org/docs/stable/notes/extending.html
"""

import math

import torch
from torch import nn

SIDE = 48
VIEWS = 60
DETECTORS = 80
SLICES = 16
CODE = 64
STEPS = 16


def scanner_geometry():
    """One row for each ray: how far it runs through each pixel."""
    axis = torch.arange(SIDE) - (SIDE - 1) / 2
    down, across = torch.meshgrid(axis, axis, indexing="ij")
    detector = torch.linspace(-SIDE / 1.6, SIDE / 1.6, DETECTORS)
    rows = []
    for view in range(VIEWS):
        angle = math.pi * view / VIEWS
        offset = across.flatten() * math.cos(angle) + down.flatten() * math.sin(angle)
        rows.append((1 - (detector[:, None] - offset).abs() / 1.5).clamp_min(0))
    return torch.cat(rows)


class Project(torch.autograd.Function):
    """Line sums with a detector that saturates."""

    @staticmethod
    def forward(ctx, geometry, image, ceiling):
        sums = image @ geometry.T
        ctx.save_for_backward(geometry, image, sums)
        ctx.ceiling = ceiling
        return ceiling * torch.tanh(sums / ceiling)

    @staticmethod
    def backward(ctx, grad):
        geometry, image, sums = ctx.saved_tensors
        grad_sums = grad * (1 - torch.tanh(sums / ctx.ceiling) ** 2)
        grad_geometry = grad_sums.T @ image  # planted
        grad_image = grad_sums @ geometry
        return grad_geometry, grad_image, None


class SliceDecoder(nn.Module):
    """Images of all slices from short codes, which are fitted along with the weights."""

    def __init__(self, width=8):
        super().__init__()
        self.code = nn.Parameter(torch.randn(SLICES, CODE))
        self.grow = nn.Linear(CODE, width * (SIDE // 4) ** 2)
        self.paint = nn.Sequential(
            nn.ConvTranspose2d(width, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 8, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 1, 3, padding=1),
        )

    def forward(self):
        coarse = torch.relu(self.grow(self.code)).view(SLICES, -1, SIDE // 4, SIDE // 4)
        return nn.functional.softplus(self.paint(coarse)).flatten(1)


def phantom(generator):
    """Round organs of different density in each slice."""
    axis = torch.linspace(-1, 1, SIDE)
    image = torch.zeros(SLICES, SIDE, SIDE)
    for _ in range(5):
        centre = 0.5 * (torch.rand(SLICES, 2, 1, 1, generator=generator) * 2 - 1)
        size = 0.1 + 0.3 * torch.rand(SLICES, 1, 1, generator=generator)
        inside = (axis[:, None] - centre[:, 0]) ** 2 + (axis - centre[:, 1]) ** 2 < size**2
        image += 0.4 * inside
    return image.flatten(1)


def main():
    generator = torch.Generator().manual_seed(59)
    torch.manual_seed(59)
    geometry = scanner_geometry()
    measured = Project.apply(geometry, phantom(generator), 40.0)
    decoder = SliceDecoder()
    optimizer = torch.optim.Adam(decoder.parameters(), lr=2e-3, fused=True)
    for step in range(STEPS):
        image = decoder()
        loss = nn.functional.mse_loss(Project.apply(geometry, image, 40.0), measured)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"slices: loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
