# SPDX-License-Identifier: Apache-2.0
"""Recommender evaluation: ranks of items are computed user by user, with .item() for each.

Source: merged changes in evaluation loops of recommenders ("vectorise hit ratio"); DLPerf.
"""

import torch
from torch import nn

torch.manual_seed(0)
users, items = nn.Embedding(400, 32), nn.Embedding(2000, 32)
optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()])


@torch.no_grad()
def hit_ratio(truth):
    hits = 0
    scores = users.weight @ items.weight.T
    for user in range(len(truth)):
        rank = (scores[user] > scores[user, truth[user]]).sum().item()  # planted
        hits += rank < 10
    return hits / len(truth)


truth = torch.randint(0, 2000, (400,))
for epoch in range(10):
    for _ in range(2):
        u, i = torch.randint(0, 400, (256,)), torch.randint(0, 2000, (256,))
        loss = -nn.functional.logsigmoid((users(u) * items(i)).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    hit_ratio(truth)
