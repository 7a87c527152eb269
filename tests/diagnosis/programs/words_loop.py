# SPDX-License-Identifier: Apache-2.0
"""Texts that are cut into words again in each step, by functions that call others."""

import re

import torch
from torch import nn

RULE = "python-in-step"
WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


def pad(ids, length):
    return ids[:length] + [0] * (length - len(ids))


def tokenize(text, vocabulary):
    ids = []
    for match in WORD.finditer(text.lower()):
        ids.append(vocabulary.get(match.group(), 1))  # planted
    return pad(ids, 64)


def build(fixed):
    vocabulary = {f"word{i}": i + 2 for i in range(1000)} | {"word": 5}
    texts = [" ".join(f"word {i * j % 977}" for j in range(40)) for i in range(48)]
    model = nn.Sequential(nn.EmbeddingBag(1100, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    ready = torch.tensor([tokenize(text, vocabulary) for text in texts])

    def step():
        ids = ready if fixed else torch.tensor([tokenize(text, vocabulary) for text in texts])  # planted
        model(ids).square().mean().backward()
        model.zero_grad()

    return step
