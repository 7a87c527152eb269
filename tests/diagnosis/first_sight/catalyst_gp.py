# SPDX-License-Identifier: Apache-2.0
"""Gaussian-process surrogate for catalyst yields: hyper-parameters by marginal likelihood."""

import math

import torch
from torch import nn

MEASUREMENTS, DESCRIPTORS, STEPS = 640, 6, 60


class GaussianProcess(nn.Module):
    def __init__(self, descriptors):
        super().__init__()
        options = {"dtype": torch.double}
        self.log_lengthscale = nn.Parameter(torch.zeros(descriptors, **options))
        self.log_signal = nn.Parameter(torch.zeros((), **options))
        self.log_noise = nn.Parameter(torch.tensor(-1.0, **options))

    def kernel(self, a, b):
        a, b = a * torch.exp(-self.log_lengthscale), b * torch.exp(-self.log_lengthscale)
        squared = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
        return torch.exp(2 * self.log_signal - 0.5 * squared.clamp_min(0))

    def covariance(self, x):
        jitter = torch.exp(2 * self.log_noise) + 1e-6
        return self.kernel(x, x) + jitter * torch.eye(len(x), dtype=x.dtype)

    def negative_log_likelihood(self, x, y):
        covariance = self.covariance(x)
        alpha = torch.linalg.inv(covariance) @ y  # planted
        log_determinant = torch.linalg.slogdet(covariance).logabsdet  # planted
        fit = y @ alpha
        return 0.5 * (fit + log_determinant + len(y) * math.log(2 * math.pi)) / len(y)

    @torch.no_grad()
    def predict(self, x, y, new):
        factor = torch.linalg.cholesky(self.covariance(x))
        cross = self.kernel(x, new)
        mean = cross.T @ torch.cholesky_solve(y.unsqueeze(1), factor).squeeze(1)
        solved = torch.linalg.solve_triangular(factor, cross, upper=False)
        variance = torch.exp(2 * self.log_signal) - solved.square().sum(dim=0)
        return mean, variance


def experiments(count, generator):
    x = torch.randn(count, DESCRIPTORS, generator=generator, dtype=torch.double)
    y = (
        torch.sin(2 * x[:, 0])
        + 0.5 * x[:, 1] * x[:, 2]
        + 0.2 * torch.randn(count, generator=generator, dtype=torch.double)
    )
    return x, y


def main():
    generator = torch.Generator().manual_seed(61)
    x, y = experiments(MEASUREMENTS, generator)
    new_x, new_y = experiments(400, generator)
    center = y.mean()
    model = GaussianProcess(DESCRIPTORS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(1, STEPS + 1):
        loss = model.negative_log_likelihood(x, y - center)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step}: negative log marginal likelihood {loss.item():.6f}")
    mean, variance = model.predict(x, y - center, new_x)
    error = (mean + center - new_y).square().mean().sqrt().item()
    inside = ((mean + center - new_y).abs() < 2 * (variance + torch.exp(2 * model.log_noise)).sqrt()).double().mean()
    print(f"test RMSE {error:.4f}, two-sigma coverage {inside.item():.3f}")


if __name__ == "__main__":
    main()
