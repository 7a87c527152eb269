# SPDX-License-Identifier: Apache-2.0
"""Tabular risk scores: a quadratic penalty on all weights is part of the loss, so autograd computes what weight_decay adds.

Source: forum thread "How does one implement weight regularization (l1 or l2)"; guides that recommend weight_decay.
"""

import torch
from torch import nn


class Risk(nn.Module):
    def __init__(self, columns=200, width=1024):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, rows):
        return self.layers(rows).squeeze(-1)


def penalty(model):
    total = 0.0
    for parameter in model.parameters():
        total = total + parameter.pow(2).sum()  # planted
    return total


torch.manual_seed(0)
table = torch.randn(20_000, 200)
defaults = (torch.rand(20_000) < 0.1).float()
model = Risk()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(40):
    rows = torch.randint(0, len(table), (64,))
    loss = nn.functional.binary_cross_entropy_with_logits(model(table[rows]), defaults[rows])
    loss = loss + 1e-4 * penalty(model)  # planted
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()
