# SPDX-License-Identifier: Apache-2.0
"""Kriging of rainfall stations: marginal-likelihood fit of an exact Gaussian process with anisotropic kernel."""

import math
import time

import torch
from torch import nn


class Kriging(nn.Module):
    """Rational-quadratic kernel over (east, north, altitude) with one length scale per axis.

    Works in double precision: neighbouring stations make the kernel matrix nearly
    singular, and in single precision the factorisation fails for long length scales.
    """

    def __init__(self, places, rain):
        super().__init__()
        self.register_buffer("places", places)
        self.register_buffer("rain", rain)
        gaps = places.unsqueeze(1) - places.unsqueeze(0)
        self.register_buffer("square_gaps", gaps.square_().view(-1, places.shape[1]))
        self.log_scale = nn.Parameter(torch.zeros(places.shape[1], dtype=places.dtype))
        self.log_signal = nn.Parameter(torch.zeros((), dtype=places.dtype))
        self.log_noise = nn.Parameter(torch.full((), -2.0, dtype=places.dtype))
        self.log_shape = nn.Parameter(torch.zeros((), dtype=places.dtype))

    def kernel(self, square_gaps):
        shape = self.log_shape.exp()
        distance = square_gaps @ torch.exp(-2.0 * self.log_scale)
        return torch.exp(self.log_signal - shape * torch.log1p(distance / (2.0 * shape)))

    def covariance(self):
        count = self.rain.numel()
        matrix = self.kernel(self.square_gaps).view(count, count)
        return matrix + torch.diag_embed((self.log_noise.exp() + 1e-8).expand(count))

    def negative_evidence(self):
        factor = torch.linalg.cholesky(self.covariance())
        whitened = torch.linalg.solve_triangular(factor, self.rain.unsqueeze(1), upper=False)
        log_det = factor.diagonal().log().sum()
        count = self.rain.numel()
        return (0.5 * whitened.square().sum() + log_det + 0.5 * count * math.log(2 * math.pi)) / count

    @torch.no_grad()
    def interpolate(self, wanted):
        factor = torch.linalg.cholesky(self.covariance())
        gaps = (wanted.unsqueeze(1) - self.places.unsqueeze(0)).square_()
        cross = self.kernel(gaps.view(-1, gaps.shape[-1])).view(gaps.shape[:2])
        mean = cross @ torch.cholesky_solve(self.rain.unsqueeze(1), factor)
        reduction = torch.linalg.solve_triangular(factor, cross.t(), upper=False).square().sum(dim=0)
        return mean.squeeze(1), (self.log_signal.exp() - reduction).clamp_min(0.0)


def rain_stations(count, generator):
    cluster = torch.rand(count // 8, 2, generator=generator, dtype=torch.float64).repeat_interleave(8, dim=0)
    flat = cluster + 0.02 * torch.randn(count, 2, generator=generator, dtype=torch.float64)
    altitude = 0.5 * torch.sin(3.0 * flat[:, :1]) + 0.1 * torch.randn(
        count, 1, generator=generator, dtype=torch.float64
    )
    rain = torch.sin(5.0 * flat[:, 0]) * torch.cos(4.0 * flat[:, 1]) + altitude.squeeze(1)
    rain = rain + 0.1 * torch.randn(count, generator=generator, dtype=torch.float64)
    return torch.cat((flat, altitude), dim=1), rain - rain.mean()


def main():
    generator = torch.Generator().manual_seed(77)
    places, rain = rain_stations(1000, generator)
    shuffled = torch.randperm(1000, generator=generator)
    known, hidden = shuffled[:900], shuffled[900:]
    model = Kriging(places[known], rain[known])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.08)
    n_iterations = 50
    started = time.process_time()
    for iteration in range(n_iterations):
        loss = model.negative_evidence()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (iteration + 1) % 10 == 0:
            print(f"iteration {iteration + 1}: negative evidence per station {loss.item():.5f}")
    elapsed = time.process_time() - started
    mean, variance = model.interpolate(places[hidden])
    rmse = (mean - rain[hidden]).square().mean().sqrt()
    print(f"length scales {[round(v, 3) for v in model.log_scale.exp().tolist()]}")
    print(f"hidden stations: rmse {rmse.item():.4f}, mean predictive sd {variance.sqrt().mean().item():.4f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()
