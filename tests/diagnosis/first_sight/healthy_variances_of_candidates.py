# SPDX-License-Identifier: Apache-2.0
"""Gaussian process: one decomposition a fit, and variances without covariances."""

import torch

torch.manual_seed(0)


def kernel(a, b):
    return torch.exp(-0.5 * torch.cdist(a, b).square())


def posterior(x, y, points, noise=1e-2):
    factor = torch.linalg.cholesky(kernel(x, x) + noise * torch.eye(len(x), dtype=x.dtype))
    cross = kernel(x, points)
    root = torch.linalg.solve_triangular(factor, cross, upper=False)
    mean = cross.T @ torch.cholesky_solve(y[:, None], factor)
    return mean.squeeze(1), 1 - root.square().sum(0)


x = torch.randn(300, 4, dtype=torch.float64)
for experiment in range(25):
    y = torch.sin(x).sum(1)
    points = torch.randn(2000, 4, dtype=torch.float64)
    mean, variance = posterior(x, y, points)
    best = (mean + 2 * variance.clamp_min(0).sqrt()).argmax()
    x = torch.cat([x[1:], points[best, None]])
print(f"best {torch.sin(x).sum(1).max().item():.4f}")
