# SPDX-License-Identifier: Apache-2.0
"""Captions: attention returns its weights, which nobody reads.

Source: torch.nn.MultiheadAttention's documentation on need_weights and the fused attention.
"""

import torch
from torch import nn

torch.manual_seed(0)


class CrossBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attend = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.feed = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, words, patches):
        mixed, _ = self.attend(self.norm(words), patches, patches)  # planted
        words = words + mixed
        return words + self.feed(words)


class Captioner(nn.Module):
    def __init__(self, dim=128, vocabulary=800):
        super().__init__()
        self.words = nn.Embedding(vocabulary, dim)
        self.patches = nn.Linear(48, dim)
        self.blocks = nn.ModuleList(CrossBlock(dim, 8) for _ in range(3))
        self.out = nn.Linear(dim, vocabulary)

    def forward(self, tokens, image):
        x, memory = self.words(tokens), self.patches(image)
        for block in self.blocks:
            x = block(x, memory)
        return self.out(x)


captioner = Captioner()
optimizer = torch.optim.AdamW(captioner.parameters(), lr=1e-4, foreach=True)
for _ in range(10):
    tokens, image = torch.randint(800, (8, 128)), torch.randn(8, 576, 48)
    scores = captioner(tokens, image)
    loss = nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
