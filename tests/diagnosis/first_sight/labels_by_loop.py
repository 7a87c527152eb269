# SPDX-License-Identifier: Apache-2.0
"""Tagging of photographs: rows of a target are set label by label.

Source: DLPerf, loops where scatter_ does the same; merged changes "vectorise multi-hot targets".
"""

import torch
from torch import nn

torch.manual_seed(0)
tags = [torch.randint(0, 200, (12,)).tolist() for _ in range(1000)]
backbone = nn.Sequential(nn.Linear(300, 128), nn.ReLU(), nn.Linear(128, 200))
optimizer = torch.optim.Adam(backbone.parameters())


def multi_hot(rows):
    target = torch.zeros(len(rows), 200)
    for i, row in enumerate(rows):
        for tag in row:
            target[i][tag] = 1.0  # planted
    return target


for start in range(0, 960, 64):
    x = torch.randn(64, 300)
    loss = nn.functional.binary_cross_entropy_with_logits(backbone(x), multi_hot(tags[start : start + 64]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
