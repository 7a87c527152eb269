# SPDX-License-Identifier: Apache-2.0
"""NLP: a mixture-of-experts language model learns a synthetic multilingual corpus.

Every sentence comes from one of several "languages", each a first-order Markov chain over its own part of
the vocabulary. A router sends every token to its two best experts; a balance loss keeps the experts in use.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocabulary: int = 800
    languages: int = 6
    width: int = 128
    experts: int = 8
    top: int = 2
    hidden: int = 256
    context: int = 64
    batch: int = 16
    steps: int = 24


class Corpus:
    def __init__(self, config, seed=0):
        self.config = config
        self.generator = torch.Generator().manual_seed(seed)
        own = config.vocabulary // config.languages
        self.own = own
        self.chains = torch.rand(config.languages, own, own, generator=self.generator) ** 12

    def batch(self):
        config = self.config
        language = torch.randint(0, config.languages, (config.batch,), generator=self.generator)
        token = torch.randint(0, self.own, (config.batch,), generator=self.generator)
        rows = [token]
        for _ in range(config.context):
            token = torch.multinomial(self.chains[language, token], 1, generator=self.generator).squeeze(1)
            rows.append(token)
        return torch.stack(rows, dim=1) + (language * self.own).unsqueeze(1)


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MixtureLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.top = config.top
        self.router = nn.Linear(config.width, config.experts, bias=False)
        self.experts = nn.ModuleList(Expert(config.width, config.hidden) for _ in range(config.experts))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        probability = self.router(tokens).softmax(dim=-1)
        weight, choice = probability.topk(self.top, dim=-1)
        weight = weight / weight.sum(dim=-1, keepdim=True)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            share = (weight * (choice == number)).sum(dim=-1, keepdim=True)
            mixed = mixed + share * expert(tokens)  # planted
        load = F.one_hot(choice, len(self.experts)).float().mean(dim=(0, 1))
        balance = len(self.experts) * (load * probability.mean(dim=0)).sum()
        return mixed.view_as(x), balance


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before = nn.LayerNorm(config.width)
        self.attention = nn.MultiheadAttention(config.width, 4, batch_first=True)
        self.after = nn.LayerNorm(config.width)
        self.mixture = MixtureLayer(config)

    def forward(self, x, mask):
        h = self.before(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        mixed, balance = self.mixture(self.after(x))
        return x + mixed, balance


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(2))
        self.head = nn.Linear(config.width, config.vocabulary)
        self.register_buffer("mask", torch.full((config.context, config.context), float("-inf")).triu(1))

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight
        total = 0.0
        for layer in self.layers:
            x, balance = layer(x, self.mask)
            total = total + balance
        return self.head(x), total / len(self.layers)


def run(config):
    corpus, model = Corpus(config), Model(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(config.steps):
        text = corpus.batch()
        logits, balance = model(text[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        (loss + 0.01 * balance).backward()
        optimizer.step()
    return loss.item(), balance.item()


if __name__ == "__main__":
    torch.manual_seed(12)
    print("loss {:.3f} balance {:.3f}".format(*run(Config())))
