# SPDX-License-Identifier: Apache-2.0
"""Segmentation with statistics of the device: a program is started and waited for in each step.

Source: Lightning-AI/pytorch-lightning#189 (a call of nvidia-smi in each step) and #3257.
"""

import subprocess

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def statistics():
    text = subprocess.run(["ps", "-e", "-o", "rss="], capture_output=True, text=True).stdout  # planted
    return max((int(n) for n in text.split()), default=0)


for step in range(20):
    loss = model(torch.randn(2, 3, 48, 48)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    used = statistics()
