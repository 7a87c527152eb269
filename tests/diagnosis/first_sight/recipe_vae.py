# SPDX-License-Identifier: Apache-2.0
"""Variational autoencoder (multinomial likelihood) that recommends recipes from saved ones."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

RECIPES, COOKS, BATCH = 14000, 4800, 32
HIDDEN, LATENT = 160, 64


def saved_recipes(rng):
    """Lists of saved recipes: popular ones and those of the cook's two cuisines."""
    cuisines = 40
    popular = 1.0 / np.arange(1, RECIPES + 1)
    table = np.cumsum(popular)
    lists = []
    for _ in range(COOKS):
        count = rng.integers(20, 60)
        broad = np.searchsorted(table, rng.random(count // 3) * table[-1])
        own = rng.integers(0, cuisines, 2)
        narrow = own[rng.integers(0, 2, count)] + cuisines * rng.integers(0, 120, count)
        lists.append(torch.from_numpy(np.unique(np.concatenate([broad, narrow]))))
    return lists


def multi_hot(lists, keep=None):
    """Click matrix of the lists, and one in which each click is kept with probability `keep`."""
    rows = torch.repeat_interleave(torch.arange(len(lists)), torch.tensor([len(x) for x in lists]))
    columns = torch.cat(lists)
    clicks = torch.zeros(len(lists), RECIPES)
    clicks[rows, columns] = 1.0
    if keep is None:
        return clicks
    kept = torch.rand(len(columns)) < keep
    thinned = torch.zeros_like(clicks)
    thinned[rows[kept], columns[kept]] = 1.0
    return clicks, thinned


class RecipeVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(RECIPES, HIDDEN)
        self.latent = nn.Linear(HIDDEN, 2 * LATENT)
        self.widen = nn.Linear(LATENT, HIDDEN)
        self.leave = nn.Linear(HIDDEN, RECIPES)

    def encode(self, clicks):
        return self.latent(torch.tanh(self.enter(F.normalize(clicks, dim=1)))).chunk(2, 1)

    def decode(self, code):
        return self.leave(torch.tanh(self.widen(code)))

    def forward(self, clicks):
        mean, spread = self.encode(clicks)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decode(code), mean, spread


def objective(clicks, scores, mean, spread, weight):
    likelihood = (torch.log_softmax(scores, 1) * clicks).sum(1).mean()
    divergence = 0.5 * (spread.exp() + mean.square() - 1 - spread).sum(1).mean()
    return weight * divergence - likelihood


def train(model, lists, epochs, rng):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)  # planted
    step, curve = 0, []
    for _ in range(epochs):
        for pick in rng.permutation(len(lists)).reshape(-1, BATCH):
            clicks, thinned = multi_hot([lists[i] for i in pick], keep=0.5)
            loss = objective(clicks, *model(thinned), weight=min(0.2, step / 500))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            curve.append(loss.detach())
            step += 1
    return torch.stack(curve)


@torch.inference_mode()
def hit_rate(model, lists, depth=50):
    """Share of cooks whose last saved recipe is among the best `depth` unseen ones."""
    known = multi_hot([x[:-1] for x in lists])
    held = torch.stack([x[-1] for x in lists])
    mean, _ = model.encode(known)
    best = model.decode(mean).masked_fill(known.bool(), -torch.inf).topk(depth, 1).indices
    return (best == held[:, None]).any(1).float().mean().item()


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    lists = saved_recipes(rng)
    for items in lists:
        items[:] = items[torch.from_numpy(rng.permutation(len(items)))]
    cut = COOKS - 48 * BATCH
    model = RecipeVAE()
    started = time.process_time()
    curve = train(model, lists[:cut], 2, rng)
    elapsed = time.process_time() - started
    print(f"loss {curve[:10].mean():.2f} -> {curve[-10:].mean():.2f}, hits {hit_rate(model, lists[cut:]):.3f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()
