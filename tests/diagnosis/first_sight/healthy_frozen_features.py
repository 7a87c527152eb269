# SPDX-License-Identifier: Apache-2.0
"""Detection of ships: a frozen backbone runs without gradients on pictures that are new in each step, and a head is trained."""

import torch
from torch import nn

torch.manual_seed(0)


def block(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True))


backbone = nn.Sequential(block(3, 32), block(32, 64), block(64, 128)).eval().requires_grad_(False)
head = nn.Sequential(nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 5, 1))
optimizer = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
for step in range(20):
    pictures = torch.rand(8, 3, 192, 192)
    ships = (torch.rand(8, 24, 24) < 0.02).float()
    boxes = torch.rand(8, 4, 24, 24)
    with torch.no_grad():
        features = backbone(pictures)
    answer = head(features)
    is_ship = nn.functional.binary_cross_entropy_with_logits(answer[:, 0], ships)
    distance = nn.functional.smooth_l1_loss(answer[:, 1:], boxes, reduction="none").mean(1)
    loss = is_ship + (distance * ships).sum() / ships.sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
