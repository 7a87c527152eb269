# SPDX-License-Identifier: Apache-2.0
"""A compiled function takes all sizes as constants, so that each new length compiles it again."""

import torch
from torch import nn

RULE = "recompilations"


def build(fixed):
    torch._dynamo.config.recompile_limit = 1000
    network = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    compiled = torch.compile(lambda x: network(x).mean(0), backend="eager", dynamic=fixed)
    lengths = iter(range(10, 100000))

    @torch.no_grad()
    def step():
        return compiled(torch.rand(next(lengths), 16))  # planted

    return step
