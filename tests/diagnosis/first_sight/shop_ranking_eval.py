# SPDX-License-Identifier: Apache-2.0
"""Offline evaluation of a two-tower recommender on held-out purchases."""

import math

import torch
from torch import nn

USERS, ITEMS, WIDTH = 8960, 16000, 48
CUTOFFS = (5, 20)


class Tower(nn.Module):
    def __init__(self, entities, side_features):
        super().__init__()
        self.identity = nn.Embedding(entities, WIDTH)
        self.side = nn.Linear(side_features, WIDTH)
        self.mix = nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, ids, side):
        return nn.functional.normalize(self.mix(self.identity(ids) + self.side(side)), dim=-1)


class RankingMetrics:
    def __init__(self, cutoffs):
        self.cutoffs = cutoffs
        self.recall = {k: 0.0 for k in cutoffs}
        self.ndcg = {k: 0.0 for k in cutoffs}
        self.count = 0
        self.discount = 1.0 / torch.log2(torch.arange(max(cutoffs)) + 2.0)

    def update(self, ranked, bought):
        hit = (ranked.unsqueeze(2) == bought.unsqueeze(1)).any(dim=2).float()
        for k in self.cutoffs:
            ideal = self.discount[: min(k, bought.shape[1])].sum()
            self.recall[k] += (hit[:, :k].sum(1) / bought.shape[1]).sum().item()
            self.ndcg[k] += ((hit[:, :k] * self.discount[:k]).sum(1) / ideal).sum().item()
        self.count += len(ranked)

    def report(self):
        for k in self.cutoffs:
            print(f"recall@{k} {self.recall[k] / self.count:.5f}   ndcg@{k} {self.ndcg[k] / self.count:.5f}")


@torch.inference_mode()
def evaluate(user_tower, item_tower, user_side, item_side, history, bought, batch=256):
    catalogue = torch.cat([item_tower(ids, item_side[ids]) for ids in torch.arange(ITEMS).split(2048)]).T.contiguous()
    metrics = RankingMetrics(CUTOFFS)
    for ids in torch.arange(USERS).split(batch):
        users = user_tower(ids, user_side[ids])
        scores = users @ catalogue
        scores.scatter_(1, history[ids], -math.inf)
        order = scores.argsort(dim=1, descending=True)  # planted
        metrics.update(order[:, : max(CUTOFFS)], bought[ids])  # planted
    return metrics


def main():
    torch.manual_seed(6)
    user_side, item_side = torch.randn(USERS, 24), torch.randn(ITEMS, 32)
    history = torch.randint(0, ITEMS, (USERS, 40))
    bought = torch.randint(0, ITEMS, (USERS, 6))
    user_tower, item_tower = Tower(USERS, 24).eval(), Tower(ITEMS, 32).eval()
    evaluate(user_tower, item_tower, user_side, item_side, history, bought).report()


if __name__ == "__main__":
    main()
