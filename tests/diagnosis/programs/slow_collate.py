# SPDX-License-Identifier: Apache-2.0
"""Samples of different length that are padded number by number when a batch is made."""

import torch
from torch import nn
from torch.utils.data import DataLoader

RULE = "loader-bound"


def pad(samples):
    longest = max(len(sample) for sample in samples)
    return torch.tensor([[float(v) for v in sample] + [0.0] * (longest - len(sample)) for sample in samples])  # planted


def pad_quickly(samples):
    return nn.utils.rnn.pad_sequence([torch.tensor(s, dtype=torch.float32) for s in samples], batch_first=True)


def build(fixed):
    samples = [list(range(200 + i % 56)) for i in range(6400)]
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8))
    samples[0] = list(range(256))
    samples = [s + [0] * (256 - len(s)) for s in samples] if fixed else [s + [0] * (256 - len(s)) for s in samples]
    batches = iter(DataLoader(samples * 10, batch_size=32, collate_fn=torch.tensor if fixed else pad))

    def step():
        x = next(batches).float()
        model(x).square().mean().backward()
        model.zero_grad()

    return step
