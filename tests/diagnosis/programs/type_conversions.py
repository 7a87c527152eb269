# SPDX-License-Identifier: Apache-2.0
"""Activations that go to float64 and back around each layer."""

import torch
from torch import nn

RULE = ("type-conversions", "float64")


def build(fixed):
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
    x = torch.randn(8192, 64)

    @torch.no_grad()
    def step():
        out = x
        for layer in layers:
            out = layer(out)
            if fixed:
                out = out.clamp(0, 6)
            else:
                out = out.double().clamp(0, 6).float()  # planted
        return out

    return step
