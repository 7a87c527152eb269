# SPDX-License-Identifier: Apache-2.0
"""Proteins: amino acids become one-hot rows that are multiplied with a table of weights.

Source: DLPerf, inefficient API use; torch.nn.Embedding looks rows up.
"""

import torch
from torch import nn

torch.manual_seed(0)
KMERS = 8000


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Linear(KMERS, 64, bias=False)
        self.head = nn.Linear(64, 3)

    def forward(self, kmers):
        rows = nn.functional.one_hot(kmers, KMERS).float()  # planted
        return self.head(self.table(rows).mean(1))  # planted


model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    kmers, fold = torch.randint(0, KMERS, (8, 120)), torch.randint(0, 3, (8,))
    loss = nn.functional.cross_entropy(model(kmers), fold)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
