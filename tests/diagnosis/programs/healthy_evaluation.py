# SPDX-License-Identifier: Apache-2.0
"""An evaluation that counts on the device and reads one figure a step."""

import torch
from torch import nn

RULE = None


def build(fixed):
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 100)
    ).eval()
    images, labels = torch.rand(64, 3, 32, 32), torch.randint(0, 100, (64,))
    history = []

    def step():
        with torch.inference_mode():
            right = torch.zeros((), dtype=torch.long)
            for x, y in zip(images.split(16), labels.split(16)):
                right += (model(x).argmax(1) == y).sum()
            history.append(right.item() / len(labels))

    return step
