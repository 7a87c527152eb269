# SPDX-License-Identifier: Apache-2.0
"""Films for viewers: each look-up in the tables normalises the rows it returns, row by row.

Source: https://github.com/pytorch/pytorch/issues/1278, https://github.com/pytorch/pytorch/pull/28546
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Tables(nn.Module):
    def __init__(self, viewers, films, size):
        super().__init__()
        self.viewers = nn.Embedding(viewers, size, max_norm=1.0)
        self.films = nn.Embedding(films, size)

    def forward(self, viewers, films):
        return (self.viewers(viewers) * self.films(films)).sum(-1)  # planted


def ranking_loss(tables, viewers, seen, unseen):
    return -nn.functional.logsigmoid(tables(viewers, seen) - tables(viewers, unseen)).mean()


viewers, films, seen = 4000, 3000, 20_000
history = TensorDataset(torch.randint(viewers, (seen,)), torch.randint(films, (seen,)))
loader = DataLoader(history, batch_size=1024, shuffle=True)
tables = Tables(viewers, films, 32)
optimizer = torch.optim.Adagrad(tables.parameters(), lr=0.05)
for epoch in range(2):
    total = 0.0
    for who, what in loader:
        loss = ranking_loss(tables, who, what, torch.randint(films, what.shape))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
