# SPDX-License-Identifier: Apache-2.0
"""Samples of different length that are padded number by number when a batch is made."""

import torch
from torch import nn
from torch.utils.data import DataLoader

RULE = "loader-bound"
WAITS = True


def pad_widely(samples):
    return torch.tensor([[float(v) for v in sample] + [0.0] * (256 - len(sample)) for sample in samples])  # planted


def build(fixed):
    samples = [list(range(200 + i % 56)) for i in range(6400)]
    if fixed:
        samples = [nn.functional.pad(torch.tensor(s, dtype=torch.float32), (0, 256 - len(s))) for s in samples]
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8))
    batches = iter(DataLoader(samples * 10, batch_size=32, collate_fn=torch.stack if fixed else pad_widely))

    def step():
        x = next(batches)
        model(x).square().mean().backward()
        model.zero_grad()

    return step
