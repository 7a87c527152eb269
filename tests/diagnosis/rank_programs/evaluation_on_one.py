# SPDX-License-Identifier: Apache-2.0
"""Rank 0 alone evaluates the model in each step, and rank 1 waits."""

import torch
from torch import nn

RULE = "uneven-ranks"


def build(fixed, rank):
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    parallel = nn.parallel.DistributedDataParallel(model)
    x, held_out = torch.randn(64, 256), torch.randn(16384, 256)

    def evaluate():
        with torch.no_grad():
            return (model(held_out) - held_out).square().mean()  # planted

    def step():
        if rank == 0 and not fixed:
            evaluate()
        parallel(x).square().mean().backward()
        parallel.zero_grad()

    return step
