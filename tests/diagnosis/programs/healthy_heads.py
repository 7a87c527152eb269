# SPDX-License-Identifier: Apache-2.0
"""A shared trunk with several heads, evaluated each step with a loader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RULE = None


def build(fixed):
    # Enough work that two workers next to it keep up on two processors.
    trunk = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU())
    heads = nn.ModuleList(nn.Linear(512, 3) for _ in range(8))
    params = [*trunk.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(params, fused=True)
    loader = DataLoader(
        TensorDataset(torch.randn(25600, 64), torch.randint(0, 3, (25600, 8))),
        batch_size=256,
        num_workers=2,
        persistent_workers=True,
    )
    batches = iter(loader)

    def step():
        x, y = next(batches)
        h = trunk(x)
        loss = sum(nn.functional.cross_entropy(head(h), y[:, i]) for i, head in enumerate(heads))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
