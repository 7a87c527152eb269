# SPDX-License-Identifier: Apache-2.0
"""Pictures are brightened and smoothed in full before a part of a tenth is cut out."""

import torch
from torch import nn

RULE = "unread-part"


def build(fixed):
    pictures, taps = torch.rand(4, 3, 256, 256), torch.full((3, 1, 5, 5), 1 / 25)
    network = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 39 * 39, 10))

    def crop(pictures):
        return pictures[..., 90:170, 90:170]

    @torch.no_grad()
    def step():
        x = crop(pictures) if fixed else pictures
        x = (x * 1.2).clamp(0, 1)  # planted
        x = nn.functional.conv2d(x, taps, groups=3, padding=2)  # planted
        return network(x if fixed else crop(x))

    return step
