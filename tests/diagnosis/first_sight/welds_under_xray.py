# SPDX-License-Identifier: Apache-2.0
"""Welds under X-ray: each pixel is compared with each of 100 thresholds, where its bin says the same.

Source: https://github.com/Lightning-AI/torchmetrics/issues/1492, https://github.com/Lightning-AI/torchmetrics/pull/1493
"""

import torch
from torch import nn

torch.manual_seed(0)


class Inspector(nn.Module):
    """Scores of pixels, from a picture at a quarter of its size."""

    def __init__(self, width=32):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 16, 3, padding=1),
        )
        self.up = nn.PixelShuffle(4)

    def forward(self, pictures):
        return self.up(self.down(pictures)).squeeze(1).sigmoid()


class Curve:
    """Precision and recall of pixels at evenly spaced thresholds."""

    def __init__(self, steps=100):
        self.thresholds = torch.linspace(0, 1, steps)
        self.hits = torch.zeros(steps, dtype=torch.long)
        self.alarms = torch.zeros(steps, dtype=torch.long)
        self.flaws = 0

    def update(self, scores, flawed):
        scores, flawed = scores.flatten(), flawed.flatten()
        above = scores >= self.thresholds[:, None]  # planted
        self.hits += (above & flawed).sum(1)  # planted
        self.alarms += above.sum(1)  # planted
        self.flaws += flawed.sum()

    def area(self):
        precision = self.hits / self.alarms.clamp_min(1)
        recall = self.hits / self.flaws
        return -torch.trapezoid(precision, recall)


def films(count, batch=4, size=160):
    for _ in range(count):
        flawed = torch.rand(batch, size, size) < 0.02
        yield torch.rand(batch, 1, size, size) + flawed.unsqueeze(1), flawed


model, curve = Inspector().eval(), Curve()
with torch.inference_mode():
    for pictures, flawed in films(16):
        curve.update(model(pictures), flawed)
print(f"area {curve.area().item():.5f}")
