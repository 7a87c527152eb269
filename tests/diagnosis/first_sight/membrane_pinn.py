# SPDX-License-Identifier: Apache-2.0
"""Physics-informed network for the damped wave equation on a 1-D membrane.

u_tt + k u_t = c^2 u_xx,  u(0,t) = u(1,t) = 0,  u(x,0) = sin(pi x),  u_t(x,0) = 0
"""

import math
import time

import torch
from torch import nn

C, K = 0.7, 0.5
OMEGA = math.sqrt((C * math.pi) ** 2 - (K / 2) ** 2)


def exact(x, t):
    decay = torch.exp(-K / 2 * t)
    return torch.sin(math.pi * x) * decay * (torch.cos(OMEGA * t) + K / (2 * OMEGA) * torch.sin(OMEGA * t))


class Membrane(nn.Module):
    """The boundary and initial conditions hold by construction."""

    def __init__(self, width=64, depth=3):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x, t):
        free = self.net(torch.stack([x, t], dim=1)).squeeze(1)
        return torch.sin(math.pi * x) + t * t * x * (1 - x) * free


def residual(model, x, t):
    """Equation residual; points are independent, so summed outputs give all derivatives."""
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = model(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    (u_tt,) = torch.autograd.grad(u_t.sum(), t, create_graph=True)
    return u_tt + K * u_t - C**2 * u_xx


def relative_error(model, n=64):
    axis = torch.linspace(0, 1, n)
    x, t = (grid.flatten() for grid in torch.meshgrid(axis, axis, indexing="ij"))
    with torch.no_grad():
        truth = exact(x, t)
        return ((model(x, t) - truth).norm() / truth.norm()).item()


def main(iterations=40, points=1024):
    # L-BFGS curvature pairs lose their meaning in single precision here
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    model = Membrane()
    sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=1)
    x, t = sobol.draw(points, dtype=torch.float64).unbind(dim=1)
    x, t = x.clone(), t.clone()
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=1.0, max_iter=8, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad(set_to_none=True)
        loss = residual(model, x, t).square().mean()
        loss.backward()
        return loss

    start = time.perf_counter()
    for iteration in range(1, iterations + 1):
        loss = optimizer.step(closure)
        if iteration % 10 == 0:
            print(f"iteration {iteration}: residual {loss.item():.3e}")
    print(f"loop {time.perf_counter() - start:.2f}s")
    print(f"relative error {relative_error(model):.2e}")


if __name__ == "__main__":
    main()
