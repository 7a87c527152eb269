# SPDX-License-Identifier: Apache-2.0
"""Two-tower retrieval for a web shop, trained with in-batch negatives."""

import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

ITEMS, CATEGORIES, HISTORY, BATCH = 120000, 400, 20, 384


class Sessions(IterableDataset):
    """Whole batches of (history, next item), drawn from a long-tailed catalogue."""

    def __init__(self, batches):
        self.batches = batches
        self.rng = np.random.default_rng(33)

    def __iter__(self):
        for _ in range(self.batches):
            taste = self.rng.integers(0, CATEGORIES, (BATCH, 1))
            depth = self.rng.random((BATCH, HISTORY + 1)) ** 3 * (ITEMS // CATEGORIES)
            items = torch.from_numpy(depth.astype(np.int64) * CATEGORIES + taste)
            yield items[:, :HISTORY], items[:, HISTORY]


class Tower(nn.Module):
    def __init__(self, inputs, out=48):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, out))

    def forward(self, x):
        return F.normalize(self.mlp(x), dim=-1)


class Retrieval(nn.Module):
    def __init__(self, embed=64):
        super().__init__()
        # Few rows of the catalogue are touched per step, hence sparse gradients.
        self.items = nn.Embedding(ITEMS, embed, sparse=True)
        self.category = nn.Embedding(CATEGORIES, 16)
        self.user_tower, self.item_tower = Tower(embed), Tower(embed + 16)

    def encode_items(self, ids):
        return self.item_tower(torch.cat([self.items(ids), self.category(ids % CATEGORIES)], dim=-1))

    def encode_users(self, history):
        return self.user_tower(F.embedding_bag(history, self.items.weight, mode="mean", sparse=True))


class Popularity:
    """Running frequencies, used to correct the sampling bias of in-batch negatives."""

    def __init__(self):
        self.count = torch.ones(ITEMS)
        self.total = float(ITEMS)

    def log_share(self, ids):
        self.count.index_add_(0, ids, torch.ones(len(ids)))
        self.total += len(ids)
        return torch.log(self.count[ids] / self.total)


def main():
    torch.manual_seed(23)
    loader = DataLoader(Sessions(200), batch_size=None, num_workers=1, persistent_workers=True, prefetch_factor=4)
    model, popularity = Retrieval(), Popularity()
    catalogue = torch.optim.SGD([model.items.weight], lr=50.0)
    dense = [p for p in model.parameters() if p is not model.items.weight]
    towers = torch.optim.Adam(dense, lr=1e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(4):
        total, steps = torch.zeros(()), 0
        for history, bought in loader:
            scores = model.encode_users(history) @ model.encode_items(bought).t() / 0.07
            same = bought.unsqueeze(0) == bought.unsqueeze(1)
            same.fill_diagonal_(False)
            scores = (scores - popularity.log_share(bought)).masked_fill(same, float("-inf"))
            loss = F.cross_entropy(scores, torch.arange(len(bought)))
            catalogue.zero_grad()
            towers.zero_grad()
            loss.backward()
            catalogue.step()
            towers.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch}: loss {total.item() / steps:.4f}")
    print(f"trained in {time.perf_counter() - start:.1f} s")
    del loader

    model.eval()
    with torch.inference_mode():
        index = model.encode_items(torch.arange(ITEMS))
        history, bought = next(iter(Sessions(1)))
        top = (model.encode_users(history) @ index.t()).topk(100).indices
        print(f"recall@100 {(top == bought.unsqueeze(1)).any(1).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
