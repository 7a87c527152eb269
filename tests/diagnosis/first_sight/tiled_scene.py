# SPDX-License-Identifier: Apache-2.0
"""Lidar segmentation: the vector of a scene is copied to each point and goes through a layer with it.

Source: PointNet segmentation implementations; a layer over a concatenation is the sum of two layers, and the second needs one row
per scene (kornia/kornia#2059 for copies made by repeat).
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
POINTS, SCENES = 2048, 4


class PointHead(nn.Module):
    def __init__(self, labels: int = 13) -> None:
        super().__init__()
        self.lift = nn.Linear(6, 64)
        self.squash = nn.Linear(64, 512)
        self.mix = nn.Linear(64 + 512, 128)
        self.out = nn.Linear(128, labels)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        each = F.relu(self.lift(points))
        scene = self.squash(each).amax(1)
        tiled = scene.unsqueeze(1).repeat(1, points.size(1), 1)  # planted
        joined = torch.cat([each, tiled], -1)  # planted
        return self.out(F.relu(self.mix(joined)))  # planted


head = PointHead()
adam = torch.optim.Adam(head.parameters(), 1e-3, foreach=True)
for _ in range(12):
    scan = torch.randn(SCENES, POINTS, 6)
    label = torch.randint(13, (SCENES, POINTS))
    adam.zero_grad()
    F.cross_entropy(head(scan).flatten(0, 1), label.flatten()).backward()
    adam.step()
