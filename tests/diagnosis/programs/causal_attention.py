# SPDX-License-Identifier: Apache-2.0
"""A transformer block with causal attention written out, with dropout."""

import math

import torch
from torch import nn

RULE = "unfused-attention"


class Attention(nn.Module):
    def __init__(self, d, heads, fixed):
        super().__init__()
        self.heads, self.fixed = heads, fixed
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("mask", torch.tril(torch.ones(256, 256, dtype=torch.bool)))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if self.fixed:
            out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(~self.mask[:t, :t], float("-inf"))  # planted
            att = nn.functional.softmax(att, dim=-1)  # planted
            out = att @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


def build(fixed):
    blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(64), Attention(64, 4, fixed)]) for _ in range(2))
    x = torch.randn(4, 256, 64)

    def step():
        h = x
        for norm, attention in blocks:
            h = h + attention(norm(h))
        h.square().mean().backward()
        blocks.zero_grad()

    return step
