# SPDX-License-Identifier: Apache-2.0
"""Nearest neighbours of one query after the other."""

import torch

RULE = ("python-loop-over-rows", "many-small-operators")


def nearest(query, base, k):
    d = (base - query).square().sum(1)
    return d.topk(k, largest=False).indices


def build(fixed):
    base, queries = torch.randn(200, 16), torch.randn(100, 16)

    @torch.no_grad()
    def step():
        if fixed:
            return torch.cdist(queries, base).topk(5, largest=False).indices
        return torch.stack([nearest(q, base, 5) for q in queries])  # planted

    return step
