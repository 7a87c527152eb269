# SPDX-License-Identifier: Apache-2.0
"""Recommender: Bayesian personalised ranking of books from implicit feedback.

Readers buy books from a few favourite shelves. Every step draws readers, one bought book each and several
books they have not bought, and lifts the bought one above the others.
"""

import random

import numpy as np
import torch
from torch import nn

READERS, BOOKS, SHELVES = 1500, 6000, 30
BATCH, NEGATIVES = 768, 8
STEPS = 48


def purchase_history(rng):
    """Each reader: some hundreds of books, mostly from two shelves; heavy readers dominate."""
    shelf_of = rng.integers(0, SHELVES, BOOKS)
    on_shelf = [np.flatnonzero(shelf_of == s) for s in range(SHELVES)]
    history = {}
    for reader in range(READERS):
        size = int(np.clip(rng.lognormal(6.0, 0.6), 60, 1800))
        favourites = np.concatenate([on_shelf[s] for s in rng.integers(0, SHELVES, 2)])
        own = rng.choice(favourites, min(size // 2, len(favourites)), replace=False)
        other = rng.integers(0, BOOKS, size - len(own))
        history[reader] = list(dict.fromkeys(np.concatenate([own, other]).tolist()))  # planted
    return history


class PairSampler:
    """Draws (reader, bought, not bought) with rejection of what the reader owns."""

    def __init__(self, history, seed):
        self.history = history
        self.random = random.Random(seed)
        self.bought = {reader: sorted(books) for reader, books in history.items()}

    def negative(self, reader):
        while True:
            book = self.random.randrange(BOOKS)
            if book not in self.history[reader]:
                return book

    def batch(self, size):
        readers, positives, negatives = [], [], []
        for _ in range(size):
            reader = self.random.randrange(READERS)
            readers.append(reader)
            positives.append(self.random.choice(self.bought[reader]))
            negatives.append([self.negative(reader) for _ in range(NEGATIVES)])
        return torch.tensor(readers), torch.tensor(positives), torch.tensor(negatives)


class Factors(nn.Module):
    def __init__(self, rank=64):
        super().__init__()
        self.reader = nn.Embedding(READERS, rank)
        self.book = nn.Embedding(BOOKS, rank)
        self.tower = nn.Sequential(nn.Linear(rank, 384), nn.ReLU(), nn.Linear(384, rank))
        self.bias = nn.Embedding(BOOKS, 1)
        for table in (self.reader, self.book):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def score(self, readers, books):
        taste = self.reader(readers).unsqueeze(1)
        content = self.book(books)
        content = content + self.tower(content)
        return (taste * content).sum(-1) + self.bias(books).squeeze(-1)


def train(history):
    sampler = PairSampler(history, seed=4)
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    curve = []
    for step in range(STEPS):
        readers, bought, other = sampler.batch(BATCH)
        wanted = model.score(readers, bought.unsqueeze(1))
        unwanted = model.score(readers, other)
        loss = -nn.functional.logsigmoid(wanted - unwanted).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return model, curve


@torch.no_grad()
def hit_rate(model, sampler, probes=512):
    readers, bought, other = sampler.batch(probes)
    wanted = model.score(readers, bought.unsqueeze(1))
    unwanted = model.score(readers, other)
    return (wanted > unwanted).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(8)
    purchases = purchase_history(np.random.default_rng(8))
    model, curve = train(purchases)
    rate = hit_rate(model, PairSampler(purchases, seed=99))
    print(f"loss {curve[-1]:.4f} pairwise hit rate {rate:.3f}")
