# SPDX-License-Identifier: Apache-2.0
"""A mask that is the same in all layers and steps, and made in each."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

RULE = "repeated-work"


def causal_bias(n):
    future = torch.ones(n, n).triu(1) > 0  # planted
    distance = (torch.arange(n)[:, None] - torch.arange(n)[None, :]).clamp(min=0)  # planted
    return (-0.05 * distance.float()).masked_fill(future, float("-inf"))  # planted


class Layer(nn.Module):
    def __init__(self, width, heads, bias=None):
        super().__init__()
        self.heads, self.qkv, self.bias = heads, nn.Linear(width, 3 * width), bias

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        bias = causal_bias(x.shape[1]) if self.bias is None else self.bias  # planted
        return x + scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2)


def build(fixed):
    bias = causal_bias(256) if fixed else None
    model = nn.Sequential(*[Layer(16, 1, bias) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(1, 256, 16)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step
