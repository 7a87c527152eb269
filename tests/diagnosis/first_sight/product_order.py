# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters: two thin matrices are multiplied to a full one before they meet a few rows.

Source: torch.linalg.multi_dot's documentation (order of products); LoRA implementations apply A, then B.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width)
        self.base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(width, rank) * 0.01)
        self.b = nn.Parameter(torch.zeros(rank, width))

    def forward(self, x):
        return self.base(x) + x @ (self.a @ self.b)  # planted


model = nn.Sequential(Adapted(1024, 16), nn.GELU(), Adapted(1024, 16))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for step in range(20):
    loss = model(torch.randn(16, 1024)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
