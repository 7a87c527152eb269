# SPDX-License-Identifier: Apache-2.0
"""Choice of experiments with a Gaussian process: the covariance of all candidates is computed for its diagonal.

Source: https://github.com/cornellius-gp/gpytorch/pull/144, https://github.com/cornellius-gp/gpytorch/issues/1785
"""

import math

import torch


class Kernel:
    def __init__(self, length, scale):
        self.length, self.scale = length, scale

    def __call__(self, a, b):
        return self.scale * torch.exp(-0.5 * (torch.cdist(a, b) / self.length).square())


class Process:
    def __init__(self, kernel, noise=1e-3):
        self.kernel, self.noise = kernel, noise

    def fit(self, x, y):
        self.x, self.mean = x, y.mean()
        k = self.kernel(x, x) + self.noise * torch.eye(len(x), dtype=x.dtype)
        self.factor = torch.linalg.cholesky(k)
        self.weights = torch.cholesky_solve((y - self.mean)[:, None], self.factor)

    def predict(self, points):
        cross = self.kernel(self.x, points)
        mean = self.mean + (cross.T @ self.weights).squeeze(1)
        root = torch.linalg.solve_triangular(self.factor, cross, upper=False)
        covariance = self.kernel(points, points) - root.T @ root  # planted
        return mean, covariance.diagonal()


def expected_improvement(mean, variance, best):
    deviation = variance.clamp_min(1e-12).sqrt()
    z = (mean - best) / deviation
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    return (mean - best) * torch.special.ndtr(z) + deviation * density


def yield_of(x):
    return torch.sin(3 * x).sum(1) - 0.4 * (x - 0.6).square().sum(1)


torch.manual_seed(0)
x = torch.rand(150, 5, dtype=torch.float64)
y = yield_of(x)
process = Process(Kernel(0.5, 1.0))
for experiment in range(20):
    process.fit(x, y)
    candidates = torch.rand(1200, 5, dtype=torch.float64)
    mean, variance = process.predict(candidates)
    choice = candidates[expected_improvement(mean, variance, y.max()).argmax()]
    x = torch.cat([x, choice[None]])
    y = torch.cat([y, yield_of(choice[None])])
print(f"best yield {y.max().item():.4f} after {len(y)} experiments")
