# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters in the cheap order, on a frozen model."""

import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


model = nn.Sequential(Adapted(768, 16), nn.GELU(), Adapted(768, 16))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for step in range(15):
    x = torch.randn(128, 768)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
