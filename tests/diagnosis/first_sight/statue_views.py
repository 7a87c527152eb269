# SPDX-License-Identifier: Apache-2.0
"""A statue from photos: the rays of a whole photo are built for the few hundred that are rendered.

Source: https://github.com/yenchenlin/nerf-pytorch, https://github.com/nerfstudio-project/nerfstudio/pull/1705
"""

import math

import torch
from torch import nn

SIDE = 720
FOCAL = 900.0
VIEWS = 8
RAYS = 256
DEPTHS = 16
NEAR, FAR = 1.5, 4.5
STEPS = 24


def camera_on_ring(angle):
    """Pose (3x4) of a camera that looks at the origin from a ring around it."""
    place = torch.tensor([math.cos(angle), 0.3, math.sin(angle)]) * 3.0
    back = place / place.norm()
    right = torch.linalg.cross(torch.tensor([0.0, 1.0, 0.0]), back)
    right = right / right.norm()
    up = torch.linalg.cross(back, right)
    return torch.stack([right, up, back, place], dim=1)


def camera_rays(pose):
    """Origins and unit directions, one row for each pixel of the photo."""
    pixel = torch.arange(SIDE * SIDE)
    column = (pixel % SIDE).float()
    row = torch.div(pixel, SIDE, rounding_mode="floor").float()
    local = torch.stack([(column - SIDE / 2) / FOCAL, -(row - SIDE / 2) / FOCAL, -torch.ones_like(row)], dim=-1)
    direction = local @ pose[:, :3].T
    direction = direction / direction.norm(dim=-1, keepdim=True)
    return pose[:, 3].expand_as(direction), direction


def encode(points, bands=6):
    scales = 2.0 ** torch.arange(bands)
    angles = (points[..., None, :] * scales[:, None]).flatten(-2)
    return torch.cat([points, angles.sin(), angles.cos()], dim=-1)


class Field(nn.Module):
    """Density and colour of a place."""

    def __init__(self, width=96):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(39, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.out = nn.Linear(width, 4)

    def forward(self, points):
        out = self.out(self.trunk(encode(points)))
        return nn.functional.softplus(out[..., 0] - 1.0), torch.sigmoid(out[..., 1:])


def render(field, origin, direction):
    depth = torch.linspace(NEAR, FAR, DEPTHS)
    points = origin[:, None] + direction[:, None] * depth[:, None]
    density, colour = field(points)
    opacity = 1 - torch.exp(-density * (FAR - NEAR) / DEPTHS)
    clear = torch.cumprod(1 - opacity + 1e-7, dim=1)
    clear = torch.cat([torch.ones_like(clear[:, :1]), clear[:, :-1]], dim=1)
    return ((opacity * clear)[..., None] * colour).sum(dim=1)


def paint_photos(generator):
    coarse = torch.rand(VIEWS, 3, 9, 9, generator=generator)
    photos = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")
    return photos.permute(0, 2, 3, 1).reshape(VIEWS, SIDE * SIDE, 3).contiguous()


def main():
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    photos = paint_photos(generator)
    poses = [camera_on_ring(2 * math.pi * view / VIEWS) for view in range(VIEWS)]
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        view = step % VIEWS
        chosen = torch.randint(0, SIDE * SIDE, (RAYS,), generator=generator)
        origins, directions = camera_rays(poses[view])  # planted
        colour = render(field, origins[chosen], directions[chosen])
        loss = nn.functional.mse_loss(colour, photos[view, chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"statue: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
