# SPDX-License-Identifier: Apache-2.0
"""Trains a text classifier: words are cut into known pieces, and each word is cut only once."""

import functools
import random

import torch
from torch import nn

random.seed(0)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = {letter: number for number, letter in enumerate(LETTERS, 1)}
for _ in range(2000):
    PIECES.setdefault("".join(random.choices(LETTERS, k=random.randint(2, 4))), len(PIECES) + 1)
WORDS = ["".join(random.choices(LETTERS, k=random.randint(2, 9))) for _ in range(3000)]


@functools.cache
def pieces(word: str) -> tuple[int, ...]:
    """The longest known piece first, from left to right."""
    found, start = [], 0
    while start < len(word):
        end = next(end for end in range(min(len(word), start + 4), start, -1) if word[start:end] in PIECES)
        found.append(PIECES[word[start:end]])
        start = end
    return tuple(found)


def encode(texts: list[list[str]]) -> tuple[torch.Tensor, torch.Tensor]:
    codes, starts = [], []
    for text in texts:
        starts.append(len(codes))
        for word in text:
            codes.extend(pieces(word))
    return torch.tensor(codes), torch.tensor(starts)


class Classifier(nn.Module):
    def __init__(self, width=192, labels=30):
        super().__init__()
        self.codes = nn.EmbeddingBag(len(PIECES) + 1, width, mode="mean")
        self.deep = nn.Sequential(nn.Linear(width, 768), nn.GELU(), nn.Linear(768, 768), nn.GELU())
        self.labels = nn.Linear(768, labels)

    def forward(self, codes, starts):
        return self.labels(self.deep(self.codes(codes, starts)))


torch.manual_seed(0)
texts = [random.choices(WORDS, k=random.randint(5, 14)) for _ in range(8000)]
labels = torch.randint(0, 30, (8000,))
model = Classifier()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
for step in range(25):
    chosen = random.sample(range(8000), 512)
    codes, starts = encode([texts[number] for number in chosen])
    loss = nn.functional.cross_entropy(model(codes, starts), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
