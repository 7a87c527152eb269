# SPDX-License-Identifier: Apache-2.0
"""Images that two workers make, in time, for a convolutional network."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RULE = None


class Images(Dataset):
    def __len__(self):
        return 8192

    def __getitem__(self, i):
        return torch.full((3, 32, 32), i / 8192), i % 10


def build(fixed):
    # Work enough that the workers keep up on two processors.
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16384, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Images(), batch_size=32, num_workers=2, persistent_workers=True))

    def step():
        x, y = next(batches)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
