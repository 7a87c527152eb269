# SPDX-License-Identifier: Apache-2.0
"""Which articles are bought together: a product of matrices of 64-bit integers, which no BLAS routine computes.

Source: https://github.com/pytorch/pytorch/issues/72408
"""

import torch

ARTICLES = 600


def read_week(week, baskets=1500):
    """One row a basket, one column an article."""
    generator = torch.Generator().manual_seed(week)
    popular = torch.linspace(0.12, 0.002, ARTICLES)
    return (torch.rand(baskets, ARTICLES, generator=generator) < popular).long()


def bought_together(bought):
    return bought.T @ bought  # planted


def lift(together, total):
    each = together.diagonal().double() / total
    return together.double() / total / (each[:, None] * each[None, :]).clamp_min(1e-12)


def best_partners(scores, count=5):
    scores = scores.clone()
    scores.fill_diagonal_(0)
    return scores.topk(count, dim=1).indices


together = torch.zeros(ARTICLES, ARTICLES, dtype=torch.long)
total = 0
for week in range(15):
    bought = read_week(week)
    together += bought_together(bought)
    total += len(bought)
partners = best_partners(lift(together, total))
print(f"{total} baskets, article 0 goes with {partners[0].tolist()}")
