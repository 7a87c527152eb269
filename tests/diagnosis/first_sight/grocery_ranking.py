# SPDX-License-Identifier: Apache-2.0
"""Offline ranking evaluation of a two-tower grocery recommender (recall and NDCG)."""

import time

import torch
from torch import nn


class ShopperTower(nn.Module):
    """Encodes a bag of purchased products into one vector per shopper."""

    def __init__(self, n_products, dim):
        super().__init__()
        self.history = nn.EmbeddingBag(n_products, dim, mode="mean")
        self.head = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, products, offsets):
        return self.head(self.history(products, offsets))


class ProductTower(nn.Module):
    def __init__(self, n_products, n_aisles, dim):
        super().__init__()
        self.product = nn.Embedding(n_products, dim)
        self.aisle = nn.Embedding(n_aisles, dim)

    def forward(self, product_ids, aisle_ids):
        return self.product(product_ids) + self.aisle(aisle_ids)


class RankingEvaluator:
    def __init__(self, shopper_tower, catalogue, depth=20):
        self.shopper_tower = shopper_tower.eval()
        self.catalogue_t = catalogue.t().contiguous()
        self.depth = depth
        self.discount = 1.0 / torch.log2(torch.arange(depth, dtype=torch.float32) + 2.0)
        self.ideal = torch.cumsum(self.discount, 0)

    def recommend(self, shoppers, baskets):
        affinity = shoppers @ self.catalogue_t
        affinity.scatter_(1, baskets, float("-inf"))
        shelf = affinity.argsort(dim=1, descending=True)[:, : self.depth]  # planted
        return shelf

    def score_batch(self, baskets, bought_later):
        n_shoppers, basket_len = baskets.shape
        offsets = torch.arange(0, n_shoppers * basket_len, basket_len)
        shoppers = self.shopper_tower(baskets.reshape(-1), offsets)
        shelf = self.recommend(shoppers, baskets)
        hits = (shelf.unsqueeze(2) == bought_later.unsqueeze(1)).any(dim=2).float()
        n_targets = bought_later.shape[1]
        recall = hits.sum(dim=1) / n_targets
        ndcg = (hits * self.discount).sum(dim=1) / self.ideal[min(n_targets, self.depth) - 1]
        return recall.sum(), ndcg.sum()


def synthetic_purchases(n_shoppers, n_products, basket_len, n_later, generator):
    """Popularity-skewed purchases: squaring uniform noise favours small product ids."""
    draws = torch.rand(n_shoppers, basket_len + n_later, generator=generator).pow(2.0)
    ids = (draws * n_products).long().clamp_(max=n_products - 1)
    return ids[:, :basket_len].contiguous(), ids[:, basket_len:].contiguous()


@torch.inference_mode()
def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(11)
    n_products, n_aisles, dim = 12000, 120, 64
    n_shoppers, batch = 9600, 96
    shopper_tower = ShopperTower(n_products, dim)
    product_tower = ProductTower(n_products, n_aisles, dim)
    aisles = torch.randint(n_aisles, (n_products,), generator=generator)
    catalogue = product_tower(torch.arange(n_products), aisles)
    baskets, later = synthetic_purchases(n_shoppers, n_products, 30, 5, generator)
    evaluator = RankingEvaluator(shopper_tower, catalogue)

    recall_sum, ndcg_sum = torch.zeros(()), torch.zeros(())
    started = time.process_time()
    for first in range(0, n_shoppers, batch):
        recall, ndcg = evaluator.score_batch(baskets[first : first + batch], later[first : first + batch])
        recall_sum += recall
        ndcg_sum += ndcg
    elapsed = time.process_time() - started
    print(f"recall@20 {recall_sum.item() / n_shoppers:.6f}  ndcg@20 {ndcg_sum.item() / n_shoppers:.6f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()
