# SPDX-License-Identifier: Apache-2.0
"""Random solids as point clouds for point_dgcnn.py."""

import torch
import torch.nn.functional as F

KINDS = 4


def solids(count, points, generator):
    """Spheres, tubes, tori and plates, turned at random about the vertical axis."""
    kind = torch.randint(KINDS, (count,), generator=generator)
    u = torch.rand(count, points, generator=generator) * 6.283
    v = torch.rand(count, points, generator=generator) * 6.283
    z = torch.rand(count, points, generator=generator) * 2 - 1
    ball = F.normalize(torch.randn(count, points, 3, generator=generator), dim=-1)
    tube = torch.stack([u.cos() * 0.6, u.sin() * 0.6, z], -1)
    ring = torch.stack([(0.7 + 0.25 * v.cos()) * u.cos(), (0.7 + 0.25 * v.cos()) * u.sin(), 0.25 * v.sin()], -1)
    plate = torch.stack([u / 3.14 - 1, v / 3.14 - 1, 0.05 * z], -1)
    cloud = torch.stack([ball, tube, ring, plate], 1)[torch.arange(count), kind]
    angle = torch.rand(count, generator=generator) * 6.283
    c, s, o = angle.cos(), angle.sin(), torch.zeros(count)
    turn = torch.stack([c, -s, o, s, c, o, o, o, o + 1], -1).view(count, 3, 3)
    return cloud @ turn + 0.02 * torch.randn(count, points, 3, generator=generator), kind
