# SPDX-License-Identifier: Apache-2.0
"""An activation as a Function in Python, with its formula written out."""

import torch
from torch import nn

RULE = "python-autograd-function"


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s * (1 + x * (1 - s)))


def build(fixed):
    layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(24))
    x = torch.randn(16, 32)

    def step():
        out = x
        for layer in layers:
            out = layer(out)
            out = nn.functional.silu(out) if fixed else Swish.apply(out)  # planted
        out.square().mean().backward()
        layers.zero_grad()

    return step
