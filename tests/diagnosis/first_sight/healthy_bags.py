# SPDX-License-Identifier: Apache-2.0
"""Advertisements: bags of words are summed as they are read, and their gradients are sparse."""

import torch
from torch import nn

torch.manual_seed(0)
WORDS = 200_000
bags = nn.EmbeddingBag(WORDS, 64, mode="sum", sparse=True)
head = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
sparse = torch.optim.SGD(bags.parameters(), lr=0.1)
dense = torch.optim.Adam(head.parameters(), foreach=True)
for step in range(20):
    words = torch.randint(0, WORDS, (512, 30))
    clicked = torch.randint(0, 2, (512,))
    loss = nn.functional.cross_entropy(head(bags(words)), clicked)
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
