# SPDX-License-Identifier: Apache-2.0
"""Captions written token by token: all tokens so far go through the model for each new one."""

import torch
from torch import nn

RULE = "decode-without-cache"


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, cache):
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        first = not cache
        if cache is not None:
            k, v = (torch.cat([old, new], 2) for old, new in zip(cache, (k, v))) if cache else (k, v)
            cache[:] = k, v
        x = x + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=first).transpose(1, 2).flatten(-2)
        return x + self.mlp(x)


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(500, 128)
        self.layers = nn.ModuleList(Layer(128) for _ in range(2))
        self.head = nn.Linear(128, 500)

    def forward(self, tokens, caches):
        x = self.embed(tokens)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.head(x[:, -1])


@torch.inference_mode()
def write(model, tokens, cached):
    caches = [[] if cached else None for _ in model.layers]
    new = tokens
    for _ in range(40):
        new = model(new if cached else tokens, caches).argmax(-1, keepdim=True)  # planted
        tokens = torch.cat([tokens, new], 1)
    return tokens


def build(fixed):
    model = Writer().eval()
    prompt = torch.randint(0, 500, (8, 4))

    def step():
        write(model, prompt, cached=fixed)

    return step
