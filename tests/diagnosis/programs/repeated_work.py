# SPDX-License-Identifier: Apache-2.0
"""A mask and a projection that each layer computes again from the same inputs."""

import torch
from torch import nn

RULE = "repeated-work"


def build(fixed):
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))
    x, graph = torch.randn(256, 64), torch.rand(256, 256)

    def normalise(graph):
        scale = graph.sum(1).rsqrt()
        return scale[:, None] * graph.exp() * scale

    @torch.no_grad()
    def step():
        out = x
        weights = normalise(graph)
        for layer in layers:
            if not fixed:
                weights = normalise(graph)  # planted
            out = (weights @ layer(out)).relu()
        return out

    return step
