# SPDX-License-Identifier: Apache-2.0
"""Answers questions by a language model: keys and values of all earlier tokens are copied for each new one.

Source: huggingface/transformers pull request 24115 (static buffers), StaticCache in its manual.
"""

import torch
from torch import nn

WORDS, WIDTH, HEADS, LAYERS, PROMPT, ANSWER = 4000, 256, 4, 4, 384, 96


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.keys = self.values = None

    def reset(self):
        self.keys = self.values = None

    def remember(self, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys = torch.cat([self.keys, key], dim=2)  # planted
            self.values = torch.cat([self.values, value], dim=2)  # planted
        return self.keys, self.values

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = self.project(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        key, value = self.remember(key, value)  # planted
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
        return self.merge(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.attention, self.between = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.feed(self.between(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PROMPT + ANSWER, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, words, start):
        x = self.words(words) + self.places.weight[start : start + words.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def answer(model, questions):
    for block in model.blocks:
        block.attention.reset()
    word = model(questions, 0).argmax(-1, keepdim=True)
    words = [word]
    for place in range(PROMPT, PROMPT + ANSWER - 1):
        word = model(word, place).argmax(-1, keepdim=True)
        words.append(word)
    return torch.cat(words, 1)


torch.manual_seed(0)
model = Model().eval()
answer(model, torch.randint(WORDS, (16, PROMPT)))
