# SPDX-License-Identifier: Apache-2.0
"""Recommender: features of a user are looked up row by row into a large tensor that is only summed.

Source: torch.nn.EmbeddingBag's documentation (without instantiating the intermediate embeddings).
"""

import torch
from torch import nn

torch.manual_seed(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(5000, 64)
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, history):
        user = self.items(history).sum(1)  # planted
        return self.head(user).squeeze(-1)


model = Tower()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in range(15):
    history, clicked = torch.randint(0, 5000, (256, 200)), torch.rand(256)
    loss = nn.functional.binary_cross_entropy_with_logits(model(history), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
