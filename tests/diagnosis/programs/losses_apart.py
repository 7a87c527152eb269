# SPDX-License-Identifier: Apache-2.0
"""Several tasks on one trunk, each with a separate backward pass."""

import torch
from torch import nn

RULE = "retained-graph"


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        convolutions = [m for i in (3, 16) for m in (nn.Conv2d(i, 16, 3, padding=1), nn.ReLU())]
        self.trunk = nn.Sequential(*convolutions, nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.heads = nn.ModuleDict({name: nn.Linear(256, 4) for name in ("pose", "age", "mood")})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


def build(fixed):
    model = Tasks()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(8, 3, 32, 32)

    def step():
        optimizer.zero_grad()
        losses = [out.square().mean() for out in model(x).values()]
        if fixed:
            losses = [torch.stack(losses).sum()]
        for loss in losses:
            loss.backward(retain_graph=True)  # planted
        optimizer.step()

    return step
