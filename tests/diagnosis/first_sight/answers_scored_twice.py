# SPDX-License-Identifier: Apache-2.0
"""Tunes a language model by rewards: one pass gives chances of tokens, and a second one their entropy.

Source: jingyaogong/minimind pull request 700 (two passes for the same input), merged Toni-SM/skrl pull request 156.
"""

import copy

import torch
from torch import nn

WORDS, WIDTH, HEADS, LENGTH, GROUP = 2000, 128, 4, 96, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = self.project(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.feed(self.between(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        return self.head(self.blocks(self.words(words) + self.places.weight[: words.shape[1]]))


def chances_of(model, words):
    scores = model(words[:, :-1]).log_softmax(-1)  # planted
    return scores.gather(-1, words[:, 1:, None]).squeeze(-1)


def entropy_of(model, words):
    scores = model(words[:, :-1]).log_softmax(-1)  # planted
    return -(scores.exp() * scores).sum(-1)


class Tuner:
    def __init__(self, model):
        self.model, self.reference = model, copy.deepcopy(model).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step(self, words, rewards):
        advantage = ((rewards - rewards.mean()) / (rewards.std() + 1e-4))[:, None]
        with torch.no_grad():
            reference = chances_of(self.reference, words)
        chances = chances_of(self.model, words)  # planted
        entropy = entropy_of(self.model, words)  # planted
        difference = reference - chances
        distance = difference.exp() - difference - 1
        loss = (0.04 * distance - (chances - chances.detach()).exp() * advantage - 0.001 * entropy).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
tuner = Tuner(Model())
for step in range(12):
    tuner.step(torch.randint(WORDS, (GROUP, LENGTH)), torch.rand(GROUP))
