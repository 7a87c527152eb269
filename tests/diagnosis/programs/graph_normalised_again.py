# SPDX-License-Identifier: Apache-2.0
"""The weights of a graph that no step changes are normalised in each step."""

import torch
from torch import nn

RULE = "repeated-work"


def build(fixed):
    graph = (torch.rand(700, 700) < 0.05).float()
    layer = nn.Linear(32, 32)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

    def normalise(graph):
        scale = (1 + graph.sum(1)).rsqrt()
        return scale[:, None] * graph * scale

    known = normalise(graph)

    def step():
        weights = known if fixed else normalise(graph)  # planted
        loss = (weights @ layer(torch.randn(700, 32))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
