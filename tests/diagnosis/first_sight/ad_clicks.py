# SPDX-License-Identifier: Apache-2.0
"""Recommender: click-through prediction from hashed categorical fields and a few dense numbers.

All fields share one hashed table. The model interacts the field vectors pairwise (dot products), joins the
result with the dense part and ends in a small tower, trained by plain stochastic gradient descent.
"""

from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn

ROWS, WIDTH, FIELDS, DENSE = 600_000, 32, 20, 13
BATCH, STEPS = 1024, 40


def impressions(seed):
    """An endless stream of (categories, numbers, clicked); categories are power-law distributed."""
    generator = torch.Generator().manual_seed(seed)
    offset = torch.randint(0, ROWS, (FIELDS,), generator=generator)
    taste = torch.randn(FIELDS, generator=generator)
    while True:
        uniform = torch.rand(BATCH, FIELDS, generator=generator)
        value = (uniform.clamp(min=1e-6).pow(-1.1)).long()
        categories = (value * 7919 + offset) % ROWS
        numbers = torch.randn(BATCH, DENSE, generator=generator)
        logit = ((value % 5 == 0).float() @ taste) + numbers[:, 0] - 0.5 * numbers[:, 1] - 1.0
        clicked = (torch.rand(BATCH, generator=generator) < torch.sigmoid(logit)).float()
        yield categories, numbers, clicked


def tower(*sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class ClickModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)  # planted
        nn.init.uniform_(self.table.weight, -0.05, 0.05)
        self.bottom = tower(DENSE, 256, 128, WIDTH)
        pairs = (FIELDS + 1) * FIELDS // 2
        self.top = tower(pairs + WIDTH, 512, 256, 1)
        self.register_buffer("pair", torch.tril_indices(FIELDS + 1, FIELDS + 1, offset=-1), persistent=False)

    def forward(self, categories, numbers):
        dense = self.bottom(numbers)
        vectors = torch.cat([dense.unsqueeze(1), self.table(categories)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        interaction = products[:, self.pair[0], self.pair[1]]
        return self.top(torch.cat([dense, interaction], dim=1)).squeeze(1)


class Progress:
    """Exponential mean of the loss and the click rate, as the dashboard shows them."""

    def __init__(self, decay=0.9):
        self.decay = decay
        self.loss = self.rate = None

    def update(self, loss, rate):
        if self.loss is None:
            self.loss, self.rate = loss, rate
        self.loss = self.decay * self.loss + (1 - self.decay) * loss
        self.rate = self.decay * self.rate + (1 - self.decay) * rate


def train():
    torch.manual_seed(9)
    model = ClickModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    progress = Progress()
    for categories, numbers, clicked in islice(impressions(seed=10), STEPS):
        logit = model(categories, numbers)
        loss = F.binary_cross_entropy_with_logits(logit, clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.update(loss.item(), clicked.mean().item())
    return progress, model


if __name__ == "__main__":
    progress, model = train()
    norm = model.table.weight.detach().norm().item()
    print(f"loss {progress.loss:.4f} click rate {progress.rate:.4f} table norm {norm:.3f}")
