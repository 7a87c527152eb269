# SPDX-License-Identifier: Apache-2.0
"""Neighbours of a graph's nodes averaged node by node."""

import torch
from torch import nn

RULE = "python-loop-over-rows"


class Conv(nn.Module):
    def __init__(self, d, fixed):
        super().__init__()
        self.lin, self.fixed = nn.Linear(2 * d, d), fixed

    def forward(self, h, src, dst, n, lists):
        if self.fixed:
            agg = torch.zeros_like(h).index_add_(0, dst, h[src])
            agg = agg / n[:, None]
        else:
            rows = []
            for node, neighbours in enumerate(lists):
                rows.append(h[neighbours].mean(0))  # planted
            agg = torch.stack(rows)
        return self.lin(torch.cat([h, agg], 1)).relu()


def build(fixed):
    nodes, deg, d = 300, 6, 32
    src = torch.randint(0, nodes, (nodes, deg))
    dst = torch.arange(nodes).repeat_interleave(deg)
    lists = list(src.unbind())
    n = torch.full((nodes,), float(deg))
    convs = nn.ModuleList(Conv(d, fixed) for _ in range(2))
    head = nn.Linear(d, 5)
    x, y = torch.randn(nodes, d), torch.randint(0, 5, (nodes,))

    def step():
        h = x
        for conv in convs:
            h = conv(h, src.flatten(), dst, n, lists)
        nn.functional.cross_entropy(head(h), y).backward()
        convs.zero_grad()
        head.zero_grad()

    return step
