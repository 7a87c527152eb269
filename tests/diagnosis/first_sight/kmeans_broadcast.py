# SPDX-License-Identifier: Apache-2.0
"""Clustering: distances to the centres by a difference of every pair in every dimension.

Source: DLPerf, inefficient API use; torch.cdist's documentation (products of matrices for large inputs).
"""

import torch

torch.manual_seed(0)


def assign(points, centres):
    difference = points[:, None, :] - centres[None, :, :]  # planted
    return difference.pow(2).sum(-1).argmin(1)  # planted


def update(points, owner, count):
    sums = torch.zeros(count, points.shape[1]).index_add_(0, owner, points)
    sizes = torch.zeros(count).index_add_(0, owner, torch.ones(len(points)))
    return sums / sizes.clamp(min=1)[:, None]


points = torch.randn(6000, 64)
centres = points[:50].clone()
for iteration in range(15):
    owner = assign(points, centres)
    centres = update(points, owner, 50)
