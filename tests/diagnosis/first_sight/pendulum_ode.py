# SPDX-License-Identifier: Apache-2.0
"""Physics: a neural differential equation learns the motion of damped driven pendulums.

Trajectories come from the exact equation. The network gives the time derivative, a classical Runge-Kutta
scheme integrates it from the first point, and the loss compares all later points.
"""

import math

import torch
from torch import nn

torch.manual_seed(47)

COUNT, POINTS, INTERVAL, STEPS = 256, 12, 0.15, 26


def true_derivative(state):
    angle, speed, clock = state.unbind(dim=-1)
    force = -math.pi * torch.sin(angle) - 0.2 * speed + 0.5 * torch.cos(clock)
    return torch.stack([speed, force, torch.full_like(clock, 2.0)], dim=-1)


def runge_kutta(derivative, state, interval):
    k1 = derivative(state)
    k2 = derivative(torch.add(state, k1, alpha=interval / 2))
    k3 = derivative(torch.add(state, k2, alpha=interval / 2))
    k4 = derivative(torch.add(state, k3, alpha=interval))
    return state + interval / 6 * (k1 + 2 * (k2 + k3) + k4)


def integrate(derivative, first, points, interval):
    """(points + 1, count, 3); every point depends on the one before."""
    path = [first]
    for _ in range(points):
        path.append(runge_kutta(derivative, path[-1], interval))
    return torch.stack(path)


class Derivative(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3)
        )
        nn.init.zeros_(self.layers[-1].bias)

    def forward(self, state):
        return self.layers(state)


class Laboratory:
    """Pendulums released at random angles; the reference uses ten times smaller steps."""

    def __init__(self, refine=10):
        self.refine = refine

    @torch.no_grad()
    def record(self):
        first = torch.rand(COUNT, 3) * torch.tensor([4.0, 2.0, 6.28]) - torch.tensor([2.0, 1.0, 0.0])
        fine = integrate(true_derivative, first, POINTS * self.refine, INTERVAL / self.refine)
        return fine[:: self.refine]


def fit():
    archive = [Laboratory().record() for _ in range(8)]
    derivative = Derivative()
    optimizer = torch.optim.Adam(derivative.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS)
    losses = []
    for step in range(STEPS):
        path = archive[step % len(archive)]
        predicted = integrate(derivative, path[0], POINTS, INTERVAL)
        loss = (predicted[1:] - path[1:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(derivative.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    losses = fit()
    print(f"loss {losses[0]:.3f} {losses[-1]:.3f}")
