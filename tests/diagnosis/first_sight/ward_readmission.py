# SPDX-License-Identifier: Apache-2.0
"""Bayesian readmission model: logistic regression with ward effects, sampled by Hamiltonian Monte Carlo."""

import math
import time

import torch

PATIENTS, COVARIATES, WARDS = 20_000, 24, 60


def simulate_admissions(generator):
    x = torch.randn(PATIENTS, COVARIATES, generator=generator)
    ward = torch.randint(WARDS, (PATIENTS,), generator=generator)
    beta = 0.4 * torch.randn(COVARIATES, generator=generator)
    effect = 0.6 * torch.randn(WARDS, generator=generator)
    p = torch.sigmoid(x @ beta + effect[ward] - 1.2)
    return x, ward, torch.bernoulli(p, generator=generator), beta


def make_potential(x, ward, y):
    """Negative log posterior of q = (beta, ward offsets, intercept, log tau), non-centred in the wards."""
    sizes = [COVARIATES, WARDS, 1, 1]

    def potential(q):
        beta, z, intercept, log_tau = q.split(sizes)
        effect = z * log_tau.exp() + intercept
        logits = x @ beta + effect.index_select(0, ward)
        nll = torch.nn.functional.binary_cross_entropy_with_logits(logits, y, reduction="sum")
        prior = 0.5 * (beta.square().sum() + z.square().sum() + (intercept / 2.0).square().sum())
        return nll + prior + 0.5 * log_tau.square().sum()

    return potential, sum(sizes)


def make_gradient(potential):
    def gradient(q):
        q = q.detach().requires_grad_()
        (g,) = torch.autograd.grad(potential(q), q)
        return g

    return gradient


def integrate(q, p, gradient, eps, steps):
    for _ in range(steps):
        p = p - 0.5 * eps * gradient(q)  # planted
        q = q + eps * p
        p = p - 0.5 * eps * gradient(q)  # planted
    return q, p


class DualAveraging:
    """Step-size adaptation of Hoffman and Gelman (2014)."""

    def __init__(self, eps, target=0.8):
        self.mu, self.target = math.log(10 * eps), target
        self.h = self.log_bar = 0.0
        self.t = 0

    def update(self, accept):
        self.t += 1
        w = 1.0 / (self.t + 10)
        self.h = (1 - w) * self.h + w * (self.target - accept)
        log_eps = self.mu - math.sqrt(self.t) / 0.05 * self.h
        eta = self.t**-0.75
        self.log_bar = eta * log_eps + (1 - eta) * self.log_bar
        return math.exp(log_eps)


def main(warmup=100, draws=300, steps=12):
    generator = torch.Generator().manual_seed(11)
    x, ward, y, truth = simulate_admissions(generator)
    potential, dim = make_potential(x, ward, y)
    gradient = make_gradient(potential)

    q = torch.zeros(dim)
    energy = potential(q).item()
    eps = 0.01
    adapt = DualAveraging(eps)
    kept, accepted = torch.empty(draws, dim), 0
    start = time.perf_counter()
    for it in range(warmup + draws):
        p = torch.randn(dim, generator=generator)
        q_new, p_new = integrate(q, p, gradient, eps, steps)
        energy_new = potential(q_new).item()
        log_ratio = energy - energy_new + 0.5 * (p.square().sum() - p_new.square().sum()).item()
        accept = math.exp(min(0.0, log_ratio)) if math.isfinite(log_ratio) else 0.0
        if torch.rand((), generator=generator).item() < accept:
            q, energy = q_new, energy_new
            accepted += it >= warmup
        if it < warmup:
            eps = adapt.update(accept)
        else:
            eps = math.exp(adapt.log_bar)
            kept[it - warmup] = q
    print(f"loop {time.perf_counter() - start:.2f} s")
    mean = kept[:, :COVARIATES].mean(0)
    print(
        f"acceptance {accepted / draws:.3f}  step {eps:.5f}  rmse of beta {(mean - truth).square().mean().sqrt():.6f}"
    )


if __name__ == "__main__":
    main()
