# SPDX-License-Identifier: Apache-2.0
"""Forces as gradients of an energy, with a graph for second derivatives that nothing computes."""

import torch
from torch import nn

RULE = "unused-second-order-graph"


def build(fixed):
    layers = [nn.Linear(3, 64), nn.SiLU()]
    for _ in range(4):
        layers += [nn.Linear(64, 64), nn.SiLU()]
    energy = nn.Sequential(*layers, nn.Linear(64, 1)).requires_grad_(False)
    state = [torch.rand(512, 3)]

    def step():
        places = state[0].detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(places).sum(), places, create_graph=not fixed)  # planted
        state[0] = places.detach() - 0.001 * slope.detach()
        return state[0]

    return step
