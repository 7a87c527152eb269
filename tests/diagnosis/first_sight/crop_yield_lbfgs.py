# SPDX-License-Identifier: Apache-2.0
"""Agriculture, Gaussian process: the length scales of a model of crop yield over weather and soil are fitted with
L-BFGS, whose line search evaluates the marginal likelihood several times per step. Prints the likelihood."""

import math

import torch

FIELDS, INPUTS = 500, 5


def harvest(generator):
    x = torch.rand(FIELDS, INPUTS, generator=generator, dtype=torch.float64)
    rain, heat, soil, slope, _ = x.unbind(1)
    y = torch.sin(4 * rain) + heat * (1 - heat) * 3 + 0.5 * soil - 0.2 * slope
    y = y + 0.1 * torch.randn(FIELDS, generator=generator, dtype=torch.float64)
    return x, (y - y.mean()) / y.std()


class MarginalLikelihood:
    """Negative log marginal likelihood per field; one Cholesky factor serves the fit and the determinant."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.scales = torch.full((INPUTS,), -0.5, dtype=torch.float64, requires_grad=True)
        self.levels = torch.tensor([0.0, -2.0], dtype=torch.float64, requires_grad=True)
        self.eye = torch.eye(FIELDS, dtype=torch.float64)
        self.evaluations = 0

    def parameters(self):
        return [self.scales, self.levels]

    def __call__(self):
        self.evaluations += 1
        z = self.x / self.scales.exp()
        norm = z.square().sum(1)
        distance = (norm[:, None] + norm[None] - 2 * z @ z.t()).clamp(min=0)
        signal, noise = self.levels.exp().unbind()
        kernel = signal * torch.exp(-0.5 * distance) + (noise + 1e-6) * self.eye
        factor = torch.linalg.cholesky(kernel)
        white = torch.linalg.solve_triangular(factor, self.y[:, None], upper=False)
        fit = 0.5 * white.square().sum()
        volume = factor.diagonal().log().sum()
        return (fit + volume) / FIELDS + 0.5 * math.log(2 * math.pi)


def main():
    generator = torch.Generator().manual_seed(261)
    objective = MarginalLikelihood(*harvest(generator))
    optimizer = torch.optim.LBFGS(
        objective.parameters(), lr=0.5, max_iter=4, history_size=8, line_search_fn="strong_wolfe",
        tolerance_grad=0, tolerance_change=0,
    )  # fmt: skip

    def closure():
        optimizer.zero_grad()
        value = objective()
        value.backward()
        return value

    values = []
    for step in range(15):
        values.append(optimizer.step(closure).item())
    lengths = objective.scales.exp().tolist()
    print(
        f"negative log-likelihood {values[0]:.3f} to {values[-1]:.3f}, lengths " + " ".join(f"{v:.2f}" for v in lengths)
    )


if __name__ == "__main__":
    main()
