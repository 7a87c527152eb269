# SPDX-License-Identifier: Apache-2.0
"""Recommender: track vectors from playlists. Two tracks of one playlist should be close, random tracks apart
(a ranking loss over sampled negatives); a small network maps the mean of the context to the predicted track."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    tracks: int = 60_000
    genres: int = 40
    dim: int = 64
    context: int = 12
    negatives: int = 24
    batch: int = 512
    steps: int = 120
    table_lr: float = 150.0
    lr: float = 0.1


class Playlists:
    """Every track has a genre; a playlist draws from one genre with some noise, popular tracks more often."""

    def __init__(self, cfg, seed=5):
        self.cfg = cfg
        self.g = torch.Generator().manual_seed(seed)
        self.per_genre = cfg.tracks // cfg.genres

    def tracks_of(self, genre, width):
        popularity = torch.rand(len(genre), width, generator=self.g) ** 6
        return genre[:, None] + self.cfg.genres * (popularity * self.per_genre).long()

    def batch(self):
        cfg = self.cfg
        genre = torch.randint(cfg.genres, (cfg.batch,), generator=self.g)
        tracks = self.tracks_of(genre, cfg.context + 1)
        negatives = torch.randint(cfg.tracks, (cfg.batch, cfg.negatives), generator=self.g)
        return tracks[:, :-1], tracks[:, -1], negatives


class TrackModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.table = nn.Embedding(cfg.tracks, cfg.dim)  # planted
        nn.init.normal_(self.table.weight, std=0.1)
        self.mix = nn.Sequential(nn.Linear(cfg.dim, 256), nn.Tanh(), nn.Linear(256, cfg.dim))

    def forward(self, context, positive, negatives):
        query = self.table(context).mean(1)
        query = query + self.mix(query)
        good = (query * self.table(positive)).sum(-1, keepdim=True)
        bad = torch.einsum("bd,bnd->bn", query, self.table(negatives))
        return good, bad


def ranking_loss(good, bad):
    return F.softplus(bad - good).mean()


def evaluate(model, data):
    """Share of sampled negatives that rank below the true next track."""
    model.eval()
    with torch.no_grad():
        good, bad = model(*data.batch())
    return (good > bad).float().mean().item()


def main():
    torch.manual_seed(0)
    cfg = Settings()
    data = Playlists(cfg)
    model = TrackModel(cfg)
    # a row of the table is met in few steps, so it moves further when it is
    groups = [{"params": model.table.parameters(), "lr": cfg.table_lr}, {"params": model.mix.parameters()}]
    optimizer = torch.optim.SGD(groups, lr=cfg.lr)
    average = None
    for step in range(cfg.steps):
        good, bad = model(*data.batch())
        loss = ranking_loss(good, bad)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        average = value if average is None else 0.9 * average + 0.1 * value
    print(f"ranking loss {average:.4f}, ranked right {evaluate(model, data):.3f}")


if __name__ == "__main__":
    main()
