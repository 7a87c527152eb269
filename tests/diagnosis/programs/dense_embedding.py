# SPDX-License-Identifier: Apache-2.0
"""A large embedding with dense gradients, of which a batch touches a few rows."""

import torch
from torch import nn

RULE = "dense-embedding-gradient"


def build(fixed):
    table = nn.Embedding(100_000, 16, sparse=fixed)
    head = nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
    ids = torch.randint(0, 100_000, (256,))

    def step():
        loss = head(table(ids)).square().mean()  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
