# SPDX-License-Identifier: Apache-2.0
"""Attention by hand, with dropout."""

import torch
from torch import nn

RULE = "unfused-attention"


def build(fixed):
    project, out = nn.Linear(64, 192), nn.Linear(64, 64)
    x = torch.randn(4, 256, 64)

    def attend(q, k, v):
        if fixed:
            return nn.functional.scaled_dot_product_attention(q, k, v)
        scores = q @ k.transpose(-2, -1)
        scores = scores / 4.0  # planted
        weights = scores.softmax(-1)  # planted
        return weights @ v

    def step():
        q, k, v = project(x).view(4, 256, 3, 4, 16).permute(2, 0, 3, 1, 4)
        out(attend(q, k, v).transpose(1, 2).flatten(2)).mean().backward()

    return step
