# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel with buckets that hold a parameter each."""

import torch
from torch import nn

RULE = "tiny-collectives"


def build(fixed, rank):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(24)])
    parallel = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=25 if fixed else 0.001)
    x = torch.randn(32, 64)

    def step():
        parallel(x).square().mean().backward()  # planted
        parallel.zero_grad()

    return step
