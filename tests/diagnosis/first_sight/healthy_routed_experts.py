# SPDX-License-Identifier: Apache-2.0
"""A language model with four experts: a loop over experts, each of which computes only its tokens."""

import torch
from torch import nn

WORDS, WIDTH, HEADS, LENGTH, EXPERTS, CHOSEN = 1000, 192, 6, 128, 4, 2


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(EXPERTS)
        )

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, experts = self.router(tokens).softmax(-1).topk(CHOSEN)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, choice = torch.where(experts == number)
            mixed = mixed.index_add(0, token, expert(tokens[token]) * weights[token, choice, None])
        return mixed.view_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.experts = Experts()

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = self.project(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.experts(self.between(x))


class Model(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        return self.head(self.blocks(self.words(words) + self.places.weight[: words.shape[1]]))


class Trainer:
    def __init__(self, model, every=10):
        self.model, self.every = model, every
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def fit(self, texts):
        for step, words in enumerate(texts):
            loss = nn.functional.cross_entropy(self.model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % self.every == self.every - 1:
                print(f"step {step + 1}: loss {loss.item():.3f}")


torch.manual_seed(0)
Trainer(Model()).fit(torch.randint(WORDS, (8, LENGTH)) for _ in range(20))
