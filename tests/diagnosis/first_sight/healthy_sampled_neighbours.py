# SPDX-License-Identifier: Apache-2.0
"""Sorts products by a graph of purchases: each batch samples new neighbours, by arrays, and averages their features."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

NODES, FEATURES, KINDS, FANOUT = 40_000, 128, 12, (10, 10)


class Graph:
    """Neighbours of node n are targets[starts[n]:starts[n + 1]]."""

    def __init__(self, generator, degree=16):
        degrees = generator.poisson(degree, NODES) + 1
        self.starts = np.concatenate([[0], degrees.cumsum()])
        self.targets = generator.integers(0, NODES, self.starts[-1])

    def sample(self, nodes, count, generator):
        first, degrees = self.starts[nodes], self.starts[nodes + 1] - self.starts[nodes]
        offset = (generator.random((len(nodes), count)) * degrees[:, None]).astype(np.int64)
        return self.targets[first[:, None] + offset]


class Sampler:
    def __init__(self, graph, features, kinds):
        self.graph, self.features, self.kinds = graph, features, kinds
        self.generator = np.random.default_rng(1)

    def __call__(self, nodes):
        layers = [np.asarray(nodes)]
        for count in FANOUT:
            layers.append(self.graph.sample(layers[-1].ravel(), count, self.generator))
        features = [self.features[torch.from_numpy(layer.ravel())] for layer in layers]
        return features, self.kinds[torch.as_tensor(nodes)]


class Sage(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        widths = [FEATURES, width, width]
        self.selves = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.others = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:], strict=False))
        self.head = nn.Linear(width, KINDS)

    def forward(self, layers):
        for own, other in zip(self.selves, self.others, strict=True):
            pairs = zip(layers, layers[1:], strict=False)
            layers = [(own(near) + other(far.view(len(near), -1, far.shape[-1]).mean(1))).relu() for near, far in pairs]
        return self.head(layers[0])


torch.manual_seed(0)
graph = Graph(np.random.default_rng(0))
sampler = Sampler(graph, torch.randn(NODES, FEATURES), torch.randint(KINDS, (NODES,)))
loader = DataLoader(range(128 * 20), batch_size=128, shuffle=True, collate_fn=sampler)
model = Sage()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for layers, kinds in loader:
    loss = nn.functional.cross_entropy(model(layers), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
