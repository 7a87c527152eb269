# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training in which one rank gets nearly all samples."""

import torch
from torch import nn

RULE = "uneven-ranks"


def build(fixed, rank):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    parallel = nn.parallel.DistributedDataParallel(model)
    samples = 2048 if fixed else 4032 if rank else 64
    x = torch.randn(samples, 256)

    def step():
        loss = parallel(x).square().mean()  # planted
        loss.backward()  # planted
        parallel.zero_grad()

    return step
