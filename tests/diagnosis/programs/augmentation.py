# SPDX-License-Identifier: Apache-2.0
"""Augmentation image by image in the main process, numpy style."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RULE = "loader-bound"
WAITS = True


class Pictures(Dataset):
    def __init__(self, fixed):
        self.data = np.random.rand(256, 3, 24, 24).astype("float32")
        self.fixed = fixed

    def __len__(self):
        return 100_000

    def __getitem__(self, i):
        image = self.data[i % 256]
        if not self.fixed:
            image = image[:, :, ::-1].copy()
            for _ in range(6):
                image = (image - image.mean()) / (image.std() + 1e-6)  # planted
                image = np.clip(image + np.random.normal(0, 0.1, image.shape), -3, 3).astype("float32")  # planted
        return torch.from_numpy(image), i % 10


def build(fixed):
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 121, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(DataLoader(Pictures(fixed), batch_size=32))

    def step():
        x, y = next(batches)  # planted
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
