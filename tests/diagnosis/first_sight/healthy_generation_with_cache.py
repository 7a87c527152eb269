# SPDX-License-Identifier: Apache-2.0
"""Text generation: one token a step, keys and values in a cache of fixed size, scores of the last token only."""

import torch
from torch import nn
from torch.nn import functional

WORDS, WIDTH, HEADS, LAYERS, LONGEST = 8000, 384, 6, 4, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.inner = nn.Linear(WIDTH, 3 * WIDTH)
        self.outer = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, hidden, cache, place):
        query, key, value = self.inner(self.norms[0](hidden)).unflatten(-1, (3, HEADS, -1)).unbind(2)
        cache[0][:, :, place] = key.squeeze(1)
        cache[1][:, :, place] = value.squeeze(1)
        seen = cache[:, :, :, : place + 1]
        read = functional.scaled_dot_product_attention(query.transpose(1, 2), seen[0], seen[1])
        hidden = hidden + self.outer(read.transpose(1, 2).flatten(2))
        return hidden + self.feed(self.norms[1](hidden))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, token, caches, place):
        hidden = self.words(token)
        for layer, cache in zip(self.layers, caches, strict=True):
            hidden = layer(hidden, cache, place)
        return self.head(hidden[:, -1])


torch.manual_seed(0)
writer = Writer().eval()
with torch.inference_mode():
    caches = [torch.zeros(2, 16, HEADS, LONGEST, WIDTH // HEADS) for _ in range(LAYERS)]
    token = torch.randint(0, WORDS, (16, 1))
    text = torch.empty(16, 40, dtype=torch.long)
    for place in range(40):
        best = writer(token, caches, place).topk(40)
        token = best.indices.gather(1, torch.multinomial(best.values.softmax(-1), 1))
        text[:, place] = token.squeeze(1)
