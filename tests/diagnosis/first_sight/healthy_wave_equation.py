# SPDX-License-Identifier: Apache-2.0
"""Waves: a network learns a differential equation; second derivatives are needed, and so is create_graph."""

import torch
from torch import nn

torch.manual_seed(0)
wave = nn.Sequential(nn.Linear(2, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
optimizer = torch.optim.Adam(wave.parameters(), lr=1e-3, foreach=True)
for step in range(20):
    points = torch.rand(2048, 2, requires_grad=True)
    height = wave(points)
    (slope,) = torch.autograd.grad(height.sum(), points, create_graph=True)
    (bend_x,) = torch.autograd.grad(slope[:, 0].sum(), points, create_graph=True)
    (bend_t,) = torch.autograd.grad(slope[:, 1].sum(), points, create_graph=True)
    loss = (bend_t[:, 1] - 4 * bend_x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
