# SPDX-License-Identifier: Apache-2.0
"""Segmentation of images with augmentation on tensors, and accuracy on the device."""

import torch
from torch import nn

RULE = None


def build(fixed):
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(32, 5, 3, 1, 1),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    images, masks = torch.rand(8, 3, 48, 48), torch.randint(0, 5, (8, 48, 48))
    right = torch.zeros((), dtype=torch.long)

    def step():
        flip = torch.rand(()) < 0.5
        x, y = (images.flip(-1), masks.flip(-1)) if flip else (images, masks)
        out = model(x + 0.05 * torch.randn_like(x))
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        right.add_((out.argmax(1) == y).sum())

    return step
