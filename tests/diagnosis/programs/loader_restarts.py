# SPDX-License-Identifier: Apache-2.0
"""A loader whose workers are restarted for each epoch of a few batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RULE = ("loader-restarts", "loader-bound")
WAITS = True


def build(fixed):
    model = nn.Linear(64, 64)
    data = TensorDataset(torch.randn(256, 64))
    loader = DataLoader(data, batch_size=64, num_workers=2, persistent_workers=fixed)

    def step():
        for (x,) in loader:  # planted
            model(x).square().mean().backward()
        model.zero_grad()

    return step
