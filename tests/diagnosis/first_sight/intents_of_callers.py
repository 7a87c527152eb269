# SPDX-License-Identifier: Apache-2.0
"""Intents of callers, by a model stored in 8 bits: each call of a layer turns its weights to floats again.

Source: https://github.com/sgl-project/sglang/pull/34305, https://github.com/artalis-io/bitnet.c/issues/2
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Packed(nn.Module):
    """A linear layer with weights of 8 bits and a scale for each row."""

    def __init__(self, inward, outward):
        super().__init__()
        weights = torch.randn(outward, inward) / inward**0.5
        scale = weights.abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("codes", (weights / scale).round().to(torch.int8))

    def forward(self, x):
        return F.linear(x, self.codes * self.scale)  # planted


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inward, self.outward = Packed(width, 3 * width), Packed(width, width)
        self.up, self.down = Packed(width, 4 * width), Packed(4 * width, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.inward(self.before(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.outward(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.after(x))))


class Intents(nn.Module):
    def __init__(self, width=512, layers=6, intents=40):
        super().__init__()
        self.embed = nn.Embedding(3000, width)
        self.blocks = nn.Sequential(*(Block(width, 8) for _ in range(layers)))
        self.head = nn.Linear(width, intents)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)).mean(1))


def calls(count):
    """What a caller said, token by token; each call is answered at once."""
    for length in torch.randint(10, 20, (count,)).tolist():
        yield torch.randint(3000, (1, length))


model = Intents().eval()
total = 0.0
with torch.inference_mode():
    for tokens in calls(30):
        chances = model(tokens).softmax(-1)
        total += chances.max().item()
print(f"confidence {total / 30:.4f}")
