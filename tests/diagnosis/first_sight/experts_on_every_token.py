# SPDX-License-Identifier: Apache-2.0
"""Language model with a mixture of experts: each expert computes all tokens, and most of what it returns is times zero.

Source: https://github.com/huggingface/blog/pull/3038, https://github.com/intel/ipex-llm/pull/9669
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Experts(nn.Module):
    def __init__(self, width, hidden, count, chosen):
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.chosen = chosen
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width)) for _ in range(count)]
        )

    def forward(self, x):
        flat = x.flatten(0, 1)
        best, which = self.router(flat).topk(self.chosen, dim=-1)
        share = torch.zeros(len(flat), len(self.experts)).scatter(1, which, best.softmax(-1))
        mixed = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            mixed = mixed + share[:, number, None] * expert(flat)  # planted
        return mixed.view_as(x)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
        self.experts = Experts(width, 2 * width, count=8, chosen=2)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x, mask):
        y = self.norms[0](x)
        x = x + self.attend(y, y, y, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return x + self.experts(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, words, width=96, depth=2, length=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList([Layer(width) for _ in range(depth)])
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.head(x)


words = 1000
corpus = torch.randint(words, (40_000,))
model = Model(words)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(16):
    starts = torch.randint(len(corpus) - 65, (12, 1))
    text = corpus[starts + torch.arange(65)]
    loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
