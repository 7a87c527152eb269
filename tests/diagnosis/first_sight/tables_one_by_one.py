# SPDX-License-Identifier: Apache-2.0
"""Clicks on advertisements: each of 72 columns has its own table, which is looked up in a loop.

Source: motefly/DeepGBM issue 17 (lookups in a loop for each field became one), one table with offsets in
lucidrains/tab-transformer-pytorch (issue 20) and rixwew/pytorch-fm.
"""

import torch
from torch import nn

COLUMNS, VALUES, WIDTH = 72, 100, 8


class Columns(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(VALUES, WIDTH) for _ in range(COLUMNS))

    def forward(self, values):
        found = []
        for column, table in enumerate(self.tables):  # planted
            found.append(table(values[:, column]))  # planted
        return torch.stack(found, 1)


class DeepFactors(nn.Module):
    def __init__(self):
        super().__init__()
        self.columns = Columns()
        self.deep = nn.Sequential(
            nn.Linear(COLUMNS * WIDTH, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, values):
        vectors = self.columns(values)  # planted
        pairs = (vectors.sum(1).square() - vectors.square().sum(1)).sum(1) / 2
        return pairs + self.deep(vectors.flatten(1)).squeeze(1)


def impressions(count, size):
    for _ in range(count):
        yield torch.randint(VALUES, (size, COLUMNS)), (torch.rand(size) < 0.1).float()


torch.manual_seed(0)
model = DeepFactors()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
for values, clicked in impressions(200, 128):
    loss = nn.functional.binary_cross_entropy_with_logits(model(values), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
