# SPDX-License-Identifier: Apache-2.0
"""Graph attention over citations: features of all pairs of nodes are put side by side to get one score of each pair.

Source: merged diegoantognini/pyGAT pull request 63 ("Use broadcast add to avoid expanding the tensors"), DGL's GATConv.
"""

import torch
from torch import nn


class GraphAttention(nn.Module):
    def __init__(self, entering, leaving):
        super().__init__()
        self.project = nn.Linear(entering, leaving, bias=False)
        self.score = nn.Parameter(torch.randn(2 * leaving, 1) / leaving)

    def forward(self, nodes, linked):
        nodes = self.project(nodes)
        scores = nn.functional.leaky_relu(self.scores(nodes), 0.2)  # planted
        weights = scores.masked_fill(~linked, -9e15).softmax(1)
        return weights @ nodes

    def scores(self, nodes):
        count = len(nodes)
        left = nodes.repeat_interleave(count, dim=0)  # planted
        right = nodes.repeat(count, 1)  # planted
        pairs = torch.cat([left, right], dim=1)  # planted
        return (pairs @ self.score).view(count, count)  # planted


class Network(nn.Module):
    def __init__(self, words, fields, width=16, heads=2):
        super().__init__()
        self.heads = nn.ModuleList(GraphAttention(words, width) for _ in range(heads))
        self.leave = GraphAttention(heads * width, fields)

    def forward(self, nodes, linked):
        nodes = nn.functional.dropout(nodes, 0.5, self.training)
        nodes = torch.cat([nn.functional.elu(head(nodes, linked)) for head in self.heads], dim=1)
        return self.leave(nodes, linked)


def citations(count=500, words=600, fields=7):
    linked = torch.rand(count, count) < 0.02
    linked = linked | linked.T | torch.eye(count, dtype=torch.bool)
    return (torch.rand(count, words) < 0.05).float(), linked, torch.randint(fields, (count,))


torch.manual_seed(0)
papers, linked, fields = citations()
known = torch.rand(len(papers)) < 0.3
model = Network(papers.shape[1], 7)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
for epoch in range(12):
    answers = model(papers, linked)
    loss = nn.functional.cross_entropy(answers[known], fields[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
