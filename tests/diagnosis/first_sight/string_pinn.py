# SPDX-License-Identifier: Apache-2.0
"""Physics-informed network for a damped string: no data, only the equation."""

import math
import time

import torch
import torch.nn as nn

SPEED, DAMPING = 1.0, 0.2


class Displacement(nn.Module):
    """u(x, t) with the fixed ends built in as a factor."""

    def __init__(self, width=96, depth=4):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x, t):
        raw = self.net(torch.stack([x, t], dim=-1)).squeeze(-1)
        return x * (1 - x) * raw


def slope(value, *inputs):
    # The residual itself is differentiated with respect to the weights.
    return torch.autograd.grad(value.sum(), inputs, create_graph=True)


def residual(field, x, t):
    u = field(x, t)
    u_x, u_t = slope(u, x, t)
    (u_xx,) = slope(u_x, x)
    (u_tt,) = slope(u_t, t)
    return u_tt + DAMPING * u_t - SPEED**2 * u_xx


def initial_mismatch(field, points):
    x = torch.rand(points)
    t = torch.zeros(points, requires_grad=True)
    u = field(x, t)
    (u_t,) = slope(u, t)
    return (u - torch.sin(math.pi * x)).square().mean() + 0.1 * u_t.square().mean()


def solve(steps=450, interior=512, boundary=128):
    torch.manual_seed(9)
    field = Displacement()
    optimizer = torch.optim.Adam(field.parameters(), lr=2e-3, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        x = torch.rand(interior).requires_grad_()
        t = (2 * torch.rand(interior)).requires_grad_()
        physics = residual(field, x, t).square().mean()
        initial = initial_mismatch(field, boundary)
        loss = physics + 20.0 * initial
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: physics {physics.item():.5f} initial {initial.item():.6f}")
    print(f"{steps} steps in {time.perf_counter() - start:.1f} s")
    return field


@torch.inference_mode()
def compare(field, points=2000):
    """Against the analytic solution of the first mode."""
    x, t = torch.rand(points), 2 * torch.rand(points)
    omega = math.sqrt((math.pi * SPEED) ** 2 - (DAMPING / 2) ** 2)
    envelope = torch.exp(-DAMPING / 2 * t)
    exact = envelope * (torch.cos(omega * t) + DAMPING / (2 * omega) * torch.sin(omega * t))
    return (field(x, t) - exact * torch.sin(math.pi * x)).abs().mean().item()


if __name__ == "__main__":
    print(f"mean deviation {compare(solve()):.4f}")
