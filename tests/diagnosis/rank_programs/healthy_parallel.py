# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training as it should be."""

import torch
from torch import nn

RULE = None


def build(fixed, rank):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01, fused=True)
    x = torch.randn(512, 256)

    def step():
        optimizer.zero_grad()
        parallel(x).square().mean().backward()
        optimizer.step()

    return step
