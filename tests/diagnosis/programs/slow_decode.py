# SPDX-License-Identifier: Apache-2.0
"""A dataset that decodes in Python, in the main process."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RULE = "loader-bound"
WAITS = True


class Texts(Dataset):
    def __init__(self, fixed):
        generator = torch.Generator().manual_seed(0)
        numbers = torch.randint(0, 255, (512, 256), generator=generator)
        self.texts = [" ".join(str(int(v)) for v in row) for row in numbers]
        self.ready = numbers.float() / 255 if fixed else None

    def __len__(self):
        return len(self.texts) * 100

    def __getitem__(self, i):
        i %= len(self.texts)
        if self.ready is not None:
            return self.ready[i]
        return torch.tensor([float(word) / 255 for word in self.texts[i].split()])  # planted


def build(fixed):
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Texts(fixed), batch_size=128))

    def step():
        x = next(batches)  # planted
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
