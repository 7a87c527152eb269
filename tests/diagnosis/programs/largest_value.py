# SPDX-License-Identifier: Apache-2.0
"""All singular values of a weight are computed for the largest one."""

import torch
from torch import nn

RULE = "decomposition-for-few-values"


def build(fixed):
    layer = nn.Linear(192, 192)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    vector = torch.randn(192)

    def largest(weight):
        if not fixed:
            return torch.linalg.svdvals(weight)[0]  # planted
        other = nn.functional.normalize(weight @ vector, dim=0)
        vector.copy_(nn.functional.normalize(weight.T @ other, dim=0))
        return other @ weight @ vector

    def step():
        with torch.no_grad():
            layer.weight /= largest(layer.weight)
        loss = layer(torch.randn(2048, 192)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
