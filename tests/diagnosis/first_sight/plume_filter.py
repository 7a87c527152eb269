# SPDX-License-Identifier: Apache-2.0
"""Particle filter that tracks two drifting pollution sources from a grid of correlated air sensors."""

import time

import torch
from torch.distributions import Distribution, MultivariateNormal


class SensorGrid:
    """A regular sensor grid; its noise has a spatially correlated part (shared weather) and a white part."""

    def __init__(self, side, correlation_length=0.15):
        axis = torch.linspace(0.0, 1.0, side)
        self.axis = axis
        places = torch.cartesian_prod(axis, axis)
        gap = torch.cdist(places, places)
        eye = torch.eye(side * side)
        self.noise_cov = 0.02 * torch.exp(-gap / correlation_length) + 0.005 * eye
        self.noise_tril = torch.linalg.cholesky(self.noise_cov)

    def expected(self, sources):
        """Mean reading for sources of shape (..., n_sources, 2)."""
        east, north = torch.exp((sources.unsqueeze(-1) - self.axis).square_().mul_(-1.0 / 0.03)).unbind(dim=-2)
        return torch.einsum("...si,...sj->...ij", east, north).flatten(-2)

    def sample(self, sources):
        mean = self.expected(sources)
        return mean + self.noise_tril @ torch.randn(mean.shape[-1])


class WindDrift:
    def __init__(self, spread=0.012):
        self.spread = spread

    def move(self, sources, step):
        wind = 0.02 * torch.tensor([torch.pi * step / 60.0]).sin()
        drifted = sources + torch.cat((wind, -wind)) + self.spread * torch.randn_like(sources)
        return drifted.clamp_(0.0, 1.0)


class ParticleFilter:
    def __init__(self, grid, drift, n_particles, n_sources):
        self.grid, self.drift = grid, drift
        self.cloud = torch.rand(n_particles, n_sources, 2)
        self.log_weight = torch.zeros(n_particles)

    def assimilate(self, reading):
        expected = self.grid.expected(self.cloud)
        likelihood = MultivariateNormal(expected, covariance_matrix=self.grid.noise_cov)  # planted
        self.log_weight += likelihood.log_prob(reading)
        self.log_weight -= torch.logsumexp(self.log_weight, dim=0)

    def effective_size(self):
        return torch.exp(-torch.logsumexp(2.0 * self.log_weight, dim=0)).item()

    def resample(self):
        """Systematic resampling."""
        count = self.log_weight.numel()
        ladder = torch.cumsum(self.log_weight.exp(), dim=0)
        pointers = (torch.arange(count) + torch.rand(1)) / count
        self.cloud = self.cloud[torch.searchsorted(ladder, pointers).clamp_(max=count - 1)]
        self.log_weight = torch.zeros(count)

    def estimate(self):
        """Posterior mean of the sorted source positions (sources are exchangeable)."""
        order = self.cloud[:, :, 0].argsort(dim=1).unsqueeze(2).expand(-1, -1, 2)
        weight = torch.softmax(self.log_weight, dim=0).view(-1, 1, 1)
        return (weight * self.cloud.gather(1, order)).sum(dim=0)


@torch.inference_mode()
def main():
    torch.manual_seed(17)
    Distribution.set_default_validate_args(False)
    grid, drift = SensorGrid(side=25), WindDrift()
    tracker = ParticleFilter(grid, drift, n_particles=64, n_sources=2)
    truth = torch.tensor([[0.3, 0.4], [0.7, 0.6]])
    n_steps, n_resampled, misses = 1200, 0, []
    started = time.process_time()
    for step in range(n_steps):
        truth = drift.move(truth, step)
        tracker.cloud = drift.move(tracker.cloud, step)
        tracker.assimilate(grid.sample(truth))
        ordered = truth[truth[:, 0].argsort()]
        misses.append((tracker.estimate() - ordered).norm(dim=1).mean())
        if tracker.effective_size() < 0.5 * tracker.log_weight.numel():
            tracker.resample()
            n_resampled += 1
    elapsed = time.process_time() - started
    miss = torch.stack(misses)
    print(
        f"mean miss, first half {miss[: n_steps // 2].mean().item():.4f}, second half {miss[n_steps // 2 :].mean().item():.4f}"
    )
    print(f"resampled {n_resampled} of {n_steps} steps")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()
