# SPDX-License-Identifier: Apache-2.0
"""Graphs: a graph convolutional network finds the research area of papers in a synthetic citation network from
word counts and citations, with labels for a few papers only. Prints the accuracy on the rest."""

import torch
import torch.nn.functional as F
from torch import nn

PAPERS, AREAS, WORDS, CITATIONS = 2_600, 7, 700, 4


def citation_network(seed):
    """Papers cite mostly papers of their own area; word counts lean to the area of the paper."""
    g = torch.Generator().manual_seed(seed)
    area = torch.randint(AREAS, (PAPERS,), generator=g)
    members = [torch.nonzero(area == a).flatten() for a in range(AREAS)]
    cited = torch.randint(PAPERS, (PAPERS, CITATIONS), generator=g)
    for a, papers in enumerate(members):
        own = papers[torch.randint(len(papers), (len(papers), CITATIONS), generator=g)]
        keep = torch.rand(len(papers), CITATIONS, generator=g) < 0.8
        cited[papers] = torch.where(keep, own, cited[papers])
    source = torch.arange(PAPERS).repeat_interleave(CITATIONS)
    topics = torch.rand(AREAS, WORDS, generator=g) ** 8
    words = torch.poisson(topics[area] + 0.3, generator=g)
    return torch.stack([source, cited.flatten()]), F.normalize(words, dim=1), area


def normalised_adjacency(edges):
    """D^-1/2 (A + A^T + I) D^-1/2"""
    adjacency = torch.zeros(PAPERS, PAPERS)
    adjacency[edges[0], edges[1]] = 1
    adjacency = torch.maximum(adjacency, adjacency.t())
    adjacency.fill_diagonal_(1)
    scale = adjacency.sum(1).rsqrt()
    return scale[:, None] * adjacency * scale[None]


class GraphConvolution(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = nn.Linear(inside, outside, bias=False)
        self.bias = nn.Parameter(torch.zeros(outside))

    def forward(self, x, adjacency):
        return adjacency @ self.linear(x) + self.bias


class GCN(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.layers = nn.ModuleList([
            GraphConvolution(WORDS, hidden),
            GraphConvolution(hidden, hidden),
            GraphConvolution(hidden, AREAS),
        ])  # fmt: skip

    def forward(self, x, adjacency):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x, adjacency))
        return self.layers[-1](x, adjacency)


def main(epochs=50):
    torch.manual_seed(40)
    edges, words, area = citation_network(41)
    adjacency = normalised_adjacency(edges)  # planted
    known = torch.randperm(PAPERS, generator=torch.Generator().manual_seed(42))[:280]
    rest = torch.ones(PAPERS, dtype=torch.bool)
    rest[known] = False

    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    for epoch in range(epochs):
        logits = model(words, adjacency)
        loss = F.cross_entropy(logits[known], area[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hits = (model(words, adjacency).argmax(1) == area)[rest].float().mean()
    print(f"loss {loss.item():.3f}, accuracy {hits:.2f}")


if __name__ == "__main__":
    main()
