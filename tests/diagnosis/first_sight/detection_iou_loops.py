# SPDX-License-Identifier: Apache-2.0
"""Detection: overlaps of boxes and anchors by two loops over Python numbers.

Source: DLPerf, "not vectorised"; merged changes that replace loops by torchvision.ops.box_iou.
"""

import torch
from torch import nn

torch.manual_seed(0)


def overlaps(boxes, anchors):
    result = torch.zeros(len(boxes), len(anchors))
    for i in range(len(boxes)):
        for j in range(len(anchors)):
            left = torch.max(boxes[i, :2], anchors[j, :2])  # planted
            right = torch.min(boxes[i, 2:], anchors[j, 2:])  # planted
            inner = (right - left).clamp(min=0).prod()  # planted
            result[i, j] = inner / 2  # planted
    return result


net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 4, 3, 2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
anchors = torch.rand(40, 4)
for image in range(8):
    found = net(torch.randn(2, 3, 64, 64)).flatten(2).transpose(1, 2).reshape(-1, 4)[:40]
    match = overlaps(torch.rand(6, 4), anchors).max(0)
    loss = (found - anchors).abs().sum(1).mul(1 + match.values).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
