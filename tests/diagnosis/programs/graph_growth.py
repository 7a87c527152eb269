# SPDX-License-Identifier: Apache-2.0
"""A state that carries its graph from step to step, so that each backward pass goes through all steps before."""

import torch
from torch import nn

RULE = "growing-graph"


def build(fixed):
    cell, head = nn.GRUCell(32, 64), nn.Linear(64, 1)
    x = torch.randn(16, 32)
    state = torch.zeros(16, 64)

    def step():
        nonlocal state
        state = cell(x, state.detach() if fixed else state)
        loss = head(state).square().mean()
        loss.backward(retain_graph=not fixed)  # planted
        cell.zero_grad()
        head.zero_grad()

    return step
