# SPDX-License-Identifier: Apache-2.0
"""Text by a transformer whose heads share keys and values, in a cache of fixed size."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self, width, heads, groups, batch, length):
        super().__init__()
        self.size, self.heads, self.groups = width // heads, heads, groups
        self.inward = nn.Linear(width, width + 2 * groups * self.size)
        self.outward = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.norm = nn.LayerNorm(width)
        self.register_buffer("keys", torch.zeros(batch, groups, length, self.size))
        self.register_buffer("values", torch.zeros(batch, groups, length, self.size))

    def forward(self, x, at):
        batch, new, width = x.shape
        parts = self.inward(self.norm(x)).view(batch, new, -1, self.size).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.groups, self.groups], dim=1)
        end = at + new
        self.keys[:, :, at:end], self.values[:, :, at:end] = k, v
        mixed = F.scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=new > 1, enable_gqa=True
        )
        x = x + self.outward(mixed.transpose(1, 2).reshape(batch, new, width))
        return x + self.mlp(x)


embed, head = nn.Embedding(1000, 384), nn.Linear(384, 1000)
layers = nn.ModuleList([Layer(384, 6, 2, batch=16, length=120) for _ in range(4)])


def generate(tokens, count):
    at = 0
    for _ in range(count):
        x = embed(tokens)
        for layer in layers:
            x = layer(x, at)
        at += tokens.shape[1]
        tokens = head(x[:, -1:]).squeeze(1).argmax(-1, keepdim=True)
        yield tokens


with torch.inference_mode():
    words = torch.cat(list(generate(torch.randint(1000, (16, 20)), 60)), dim=1)
print(words[0, :8].tolist())
