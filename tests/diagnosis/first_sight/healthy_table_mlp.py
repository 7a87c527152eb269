# SPDX-License-Identifier: Apache-2.0
"""Tabular data already in memory, cut into batches by indices."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(20000, 64), torch.randn(20000)
model = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 1))
optimizer = torch.optim.AdamW(model.parameters())
for batch in torch.randperm(20000)[:16384].split(1024):
    loss = (model(x[batch]).squeeze(1) - y[batch]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
