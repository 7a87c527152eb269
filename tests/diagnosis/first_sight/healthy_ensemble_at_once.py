# SPDX-License-Identifier: Apache-2.0
"""Twelve models of a battery are stacked, called by one vmap, and updated together."""

import torch
from torch import nn

torch.manual_seed(0)


def make_member():
    return nn.Sequential(nn.Linear(6, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1))


members = [make_member() for _ in range(12)]
weights, buffers = torch.func.stack_module_state(members)
optimizer = torch.optim.Adam(weights.values(), lr=1e-3)
drives = torch.randn(20_000, 6)
capacity = (drives[:, :1] * drives[:, 1:2]).tanh()


def call(weights, buffers, x):
    return torch.func.functional_call(members[0], (weights, buffers), x)


for step in range(60):
    rows = torch.randint(len(drives), (12, 256))
    predictions = torch.vmap(call)(weights, buffers, drives[rows])
    loss = (predictions - capacity[rows]).square().mean(dim=(1, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mean error {loss.item() / 12:.4f}")
