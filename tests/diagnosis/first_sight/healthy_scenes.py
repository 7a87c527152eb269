# SPDX-License-Identifier: Apache-2.0
"""Lidar segmentation: the vector of a scene goes through a separate layer and is added to all points by broadcasting."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


class PointHead(nn.Module):
    def __init__(self, labels: int = 13) -> None:
        super().__init__()
        self.lift = nn.Linear(6, 64)
        self.squash = nn.Linear(64, 512)
        self.mix = nn.Linear(64, 128)
        self.scene = nn.Linear(512, 128, bias=False)
        self.out = nn.Linear(128, labels)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        each = F.relu(self.lift(points))
        scene = self.scene(self.squash(each).amax(1))
        return self.out(F.relu(self.mix(each) + scene[:, None]))


head = PointHead()
adam = torch.optim.Adam(head.parameters(), 1e-3, foreach=True)
for _ in range(12):
    scan, label = torch.randn(4, 2048, 6), torch.randint(13, (4, 2048))
    adam.zero_grad()
    F.cross_entropy(head(scan).flatten(0, 1), label.flatten()).backward()
    adam.step()
