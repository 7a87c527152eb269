# SPDX-License-Identifier: Apache-2.0
"""Particle marginal Metropolis-Hastings for a stochastic volatility model of exchange rates."""

import math
import time

import torch
from torch.distributions import Beta, Gamma, Normal

N_DAYS, N_PARTICLES, N_PROPOSALS = 260, 128, 100


def simulate_returns(mu, phi, sigma, n_days):
    level, returns = torch.tensor(mu), []
    for _ in range(n_days):
        level = mu + phi * (level - mu) + sigma * torch.randn(())
        returns.append(torch.exp(0.5 * level) * torch.randn(()))
    return torch.stack(returns)


class VolatilityFilter:
    """Bootstrap particle filter; h_t is the log variance of day t."""

    def __init__(self, returns, n_particles):
        self.returns = returns.unbind()
        self.n_particles = n_particles
        self.grid = torch.arange(n_particles, dtype=torch.float32)

    def resample(self, weights):
        """Systematic resampling: one uniform offset for all particles."""
        ticks = (self.grid + torch.rand(())) / self.n_particles
        index = torch.searchsorted(weights.cumsum(0), ticks)
        return index.clamp_(max=self.n_particles - 1)

    def log_likelihood(self, mu, phi, sigma):
        stationary = sigma / math.sqrt(1 - phi * phi)
        level = mu + stationary * torch.randn(self.n_particles)
        total = torch.zeros(())
        for value in self.returns:
            level = Normal(mu + phi * (level - mu), sigma).sample()  # planted
            observed = Normal(0.0, torch.exp(0.5 * level))  # planted
            log_weight = observed.log_prob(value)
            evidence = torch.logsumexp(log_weight, 0)
            total += evidence
            level = level[self.resample(torch.exp(log_weight - evidence))]
        return total.item() - len(self.returns) * math.log(self.n_particles)


class Prior:
    def __init__(self):
        self.mu = Normal(-9.0, 2.0)
        self.phi = Beta(20.0, 1.5)
        self.precision = Gamma(2.5, 0.05)

    def log_density(self, mu, phi, sigma):
        parts = (
            self.mu.log_prob(torch.tensor(mu)),
            self.phi.log_prob(torch.tensor((phi + 1) / 2)),
            self.precision.log_prob(torch.tensor(sigma**-2)),
        )
        return sum(parts).item()


class Chain:
    """Random walk on (mu, atanh phi, log sigma); keeps the likelihood estimate of the current state."""

    SCALE = torch.tensor([0.15, 0.12, 0.12])

    def __init__(self, particle_filter, prior, start):
        self.filter, self.prior = particle_filter, prior
        self.position = torch.tensor(start)
        self.score = self.evaluate(self.position)
        self.accepted, self.trace = 0, []

    @staticmethod
    def constrain(position):
        mu, z, log_sigma = position.tolist()
        return mu, math.tanh(z), math.exp(log_sigma)

    def evaluate(self, position):
        mu, phi, sigma = self.constrain(position)
        jacobian = math.log(1 - phi * phi) + math.log(sigma)
        return self.filter.log_likelihood(mu, phi, sigma) + self.prior.log_density(mu, phi, sigma) + jacobian

    def step(self):
        proposal = self.position + self.SCALE * torch.randn(3)
        score = self.evaluate(proposal)
        if math.log(torch.rand(()).item()) < score - self.score:
            self.position, self.score = proposal, score
            self.accepted += 1
        self.trace.append(self.constrain(self.position))


@torch.inference_mode()
def main():
    torch.manual_seed(77)
    returns = simulate_returns(-9.2, 0.96, 0.22, N_DAYS)
    chain = Chain(VolatilityFilter(returns, N_PARTICLES), Prior(), [-9.0, 1.6, -1.4])
    started = time.perf_counter()
    for iteration in range(N_PROPOSALS):
        chain.step()
        if iteration % 25 == 24:
            print(f"iteration {iteration + 1:4d}  accepted {chain.accepted}  log posterior {chain.score:.2f}")
    elapsed = time.perf_counter() - started
    kept = torch.tensor(chain.trace[N_PROPOSALS // 4 :])
    for name, mean, spread in zip(("mu", "phi", "sigma"), kept.mean(0).tolist(), kept.std(0).tolist()):
        print(f"{name:6s} {mean:8.3f} +- {spread:.3f}")
    print(f"{N_PROPOSALS} proposals in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
