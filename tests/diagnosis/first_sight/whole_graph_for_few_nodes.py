# SPDX-License-Identifier: Apache-2.0
"""Fraud in a graph of payments: a batch of 32 accounts needs their neighbours' neighbours, and gets the whole graph.

Source: https://github.com/pyg-team/pytorch_geometric/pull/7931, https://github.com/pyg-team/pytorch_geometric/issues/406
"""

import torch
from torch import nn

torch.manual_seed(0)


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.others = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, edges):
        source, target = edges
        messages = self.others(x)[source]
        return self.own(x) + torch.zeros(len(x), messages.shape[1]).index_add(0, target, messages)


class Network(nn.Module):
    def __init__(self, inputs, hidden=32, classes=2):
        super().__init__()
        self.first, self.second = Convolution(inputs, hidden), Convolution(hidden, classes)

    def forward(self, x, edges):
        return self.second(torch.relu(self.first(x, edges)), edges)


class Payments:
    def __init__(self, accounts=12_000, degree=4, size=24):
        self.x = torch.randn(accounts, size)
        self.edges = torch.randint(accounts, (2, accounts * degree))
        self.fraud = torch.randint(2, (accounts,))
        order = self.edges[1].argsort()
        self.sources = self.edges[0][order]
        self.starts = torch.searchsorted(self.edges[1][order].contiguous(), torch.arange(accounts + 1))

    def incoming(self, nodes):
        """The edges that end at the nodes."""
        counts = self.starts[nodes + 1] - self.starts[nodes]
        first = counts.cumsum(0) - counts
        at = torch.arange(int(counts.sum())) - first.repeat_interleave(counts)
        return self.sources[self.starts[nodes].repeat_interleave(counts) + at], nodes.repeat_interleave(counts)

    def around(self, seeds):
        """The nodes within two edges, the edges between them, and where the seeds are."""
        near = torch.cat([seeds, self.incoming(seeds)[0]]).unique()
        source, target = self.incoming(near)
        nodes = torch.cat([near, source]).unique()
        edges = torch.stack([torch.searchsorted(nodes, source), torch.searchsorted(nodes, target)])
        return self.x[nodes], edges, torch.searchsorted(nodes, seeds)


payments = Payments()
model = Network(payments.x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for seeds in torch.randperm(len(payments.x))[: 24 * 32].split(32):
    logits = model(payments.x, payments.edges)[seeds]  # planted
    loss = nn.functional.cross_entropy(logits, payments.fraud[seeds])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
