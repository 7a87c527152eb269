# SPDX-License-Identifier: Apache-2.0
"""A cache of results whose keys never come again."""

import torch
from torch import nn

RULE = "memory-growth"
GAINS = "memory"


def build(fixed):
    model = nn.Linear(256, 256)
    cache = {}
    count = 0

    @torch.inference_mode()
    def step():
        nonlocal count
        count += 1
        x = torch.randn(64, 256)
        out = model(x)  # planted
        if not fixed:
            cache[count] = out
        return out.sum()

    return step
