# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings whose tables each layer computes again, from Python numbers."""

import functools

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

RULE = "repeated-work"


class Rotary(nn.Module):
    def __init__(self, width, kept):
        super().__init__()
        self.width = width
        self.known = self.tables(128) if kept else None

    def tables(self, length):
        half = torch.arange(0, self.width, 2).float() / self.width
        angle = torch.outer(torch.arange(length).float(), 1.0 / 10000**half)
        angle = torch.cat([angle, angle], -1)
        return angle.cos(), angle.sin()

    def forward(self, x):
        cos, sin = self.known or self.tables(x.shape[-2])  # planted
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads, rotary):
        super().__init__()
        self.heads, self.qkv, self.rotary = heads, nn.Linear(width, 3 * width), rotary(width // heads)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return x + scaled_dot_product_attention(self.rotary(q), self.rotary(k), v).transpose(1, 2).flatten(2)


def build(fixed):
    rotary = functools.partial(Rotary, kept=fixed)
    model = nn.Sequential(*[Attention(32, 2, rotary) for _ in range(4)]).eval()
    x = torch.randn(1, 128, 32)
    return torch.inference_mode()(lambda: model(x))
