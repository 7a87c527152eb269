# SPDX-License-Identifier: Apache-2.0
"""Each of 48 columns is looked up in a separate table, one after another."""

import torch
from torch import nn

RULE = "python-loop-over-rows"
COLUMNS, VALUES, WIDTH = 48, 50, 8


def build(fixed):
    tables = nn.ModuleList(nn.Embedding(VALUES, WIDTH) for _ in range(COLUMNS))
    joined = nn.Embedding(COLUMNS * VALUES, WIDTH)
    offsets = VALUES * torch.arange(COLUMNS)
    head = nn.Linear(COLUMNS * WIDTH, 1)

    def find(values):
        if fixed:
            return joined(values + offsets).flatten(1)
        found = []
        for column, table in enumerate(tables):
            found.append(table(values[:, column]))  # planted
        return torch.cat(found, 1)

    def step():
        loss = head(find(torch.randint(VALUES, (64, COLUMNS)))).square().mean()
        loss.backward()
        return loss

    return step
