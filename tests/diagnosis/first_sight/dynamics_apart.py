# SPDX-License-Identifier: Apache-2.0
"""Model-based control of a pendulum: sixteen small models of its dynamics are called and updated one by one.

Source: https://github.com/facebookresearch/mbrl-lib/issues/162, https://docs.pytorch.org/tutorials/intermediate/ensembling.html
"""

import torch
from torch import nn

torch.manual_seed(0)


def simulate(count, dt=0.05):
    """Random states and torques, and how the states change."""
    angle = (torch.rand(count) * 2 - 1) * 3.14
    speed = torch.randn(count) * 2
    torque = torch.rand(count) * 4 - 2
    faster = speed + dt * (14.7 * angle.sin() + 3 * torque)
    change = torch.stack([dt * faster, faster - speed], dim=1)
    return torch.stack([angle.sin(), angle.cos(), speed, torque], dim=1), change


def make_member(width=64):
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))


members = [make_member() for _ in range(16)]
parameters = [weight for member in members for weight in member.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
inputs, changes = simulate(20_000)


def sample(batch=64):
    rows = torch.randint(len(inputs), (len(members), batch))
    return inputs[rows], changes[rows]


for step in range(60):
    x, y = sample()
    predictions = torch.stack([member(rows) for member, rows in zip(members, x, strict=True)])  # planted
    loss = (predictions - y).square().mean(dim=(1, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mean error {loss.item() / len(members):.4f}")
