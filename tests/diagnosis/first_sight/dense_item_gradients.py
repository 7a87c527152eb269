# SPDX-License-Identifier: Apache-2.0
"""Recommender: each step computes gradients and Adam's moments for all 300 000 items, of which a batch reads some 2 000.

Source: pytorch/pytorch issue 5309, "Slow optimization with large vocabulary size embedding matrices".
"""

import torch
from torch import nn

USERS, ITEMS, FACTORS = 50_000, 300_000, 32


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, FACTORS)  # planted
        self.items = nn.Embedding(ITEMS, FACTORS)  # planted
        self.tower = nn.Sequential(nn.Linear(FACTORS, 128), nn.ReLU(), nn.Linear(128, FACTORS))

    def forward(self, user, item):
        return (self.tower(self.users(user)) * self.items(item)).sum(-1)  # planted


torch.manual_seed(0)
model = TwoTowers()
tables = [model.users.weight, model.items.weight]
optimizers = [torch.optim.Adam(tables, lr=1e-3), torch.optim.Adam(model.tower.parameters(), lr=1e-3)]  # planted
for step in range(25):
    user = torch.randint(0, USERS, (2048,))
    item = torch.randint(0, ITEMS, (2048,))
    clicked = (torch.rand(2048) < 0.2).float()
    loss = nn.functional.binary_cross_entropy_with_logits(model(user, item), clicked)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()  # planted
    for optimizer in optimizers:
        optimizer.step()  # planted
    if step % 10 == 0:
        print(step, loss.item())
