# SPDX-License-Identifier: Apache-2.0
"""Translation: each new token runs the decoder over all tokens so far, without a cache of keys and values.

Source: Hugging Face "KV cache" guide; fairseq incremental decoding.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.mlp(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 192)
        self.blocks = nn.Sequential(*[Block(192) for _ in range(3)])
        self.head = nn.Linear(192, 1000)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens))[:, -1])


@torch.inference_mode()
def generate(model, tokens, count):
    for _ in range(count):
        following = model(tokens).argmax(-1)  # planted
        tokens = torch.cat([tokens, following[:, None]], 1)
    return tokens


decoder = Decoder().eval()
for sentence in range(3):
    generate(decoder, torch.randint(0, 1000, (4, 8)), 48)
