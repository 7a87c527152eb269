# SPDX-License-Identifier: Apache-2.0
"""Gradients are averaged by hand, one parameter after the other."""

import torch
import torch.distributed as dist
from torch import nn

RULE = "tiny-collectives"


def build(fixed, rank):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(24)])
    x = torch.randn(32, 32)

    def step():
        model.zero_grad()
        model(x).square().mean().backward()
        if fixed:
            flat = torch.cat([p.grad.flatten() for p in model.parameters()])
            dist.all_reduce(flat)
            return
        for p in model.parameters():
            dist.all_reduce(p.grad)  # planted

    return step
