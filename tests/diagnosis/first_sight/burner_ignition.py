# SPDX-License-Identifier: Apache-2.0
"""Ignition delays of many gas mixtures: stiff kinetics by an implicit two-stage Rosenbrock scheme."""

import math
import time

import torch
import torch.nn.functional as F

MIXTURES, SPECIES, STEPS, SWEEPS = 1500, 7, 110, 12


class Mechanism:
    """Reversible reactions with Arrhenius rates; the last entry of the state is the temperature."""

    def __init__(self, reactions, generator):
        first = torch.randint(0, SPECIES, (reactions,), generator=generator)
        second = torch.randint(0, SPECIES, (reactions,), generator=generator)
        product = torch.randint(0, SPECIES, (reactions, 2), generator=generator)
        change = torch.zeros(reactions, SPECIES, dtype=torch.float64)
        rows = torch.arange(reactions)
        for column, sign in ((first, -1.0), (second, -1.0), (product[:, 0], 1.0), (product[:, 1], 1.0)):
            change.index_put_((rows, column), torch.full((reactions,), sign, dtype=torch.float64), accumulate=True)
        self.first, self.second = first, second
        self.log_rate = 9.0 + 5.0 * torch.rand(reactions, generator=generator, dtype=torch.float64)
        self.barrier = 6.0 + 8.0 * torch.rand(reactions, generator=generator, dtype=torch.float64)
        heat = 0.1 * torch.rand(reactions, 1, generator=generator, dtype=torch.float64)

        self.effect = torch.cat([change, heat], 1)
        self.is_first = F.one_hot(first, SPECIES + 1).double()
        self.is_second = F.one_hot(second, SPECIES + 1).double()

    def factors(self, state):
        rate = torch.exp(self.log_rate - self.barrier / state[:, SPECIES:])
        return rate, state[:, self.first], state[:, self.second]

    def slope(self, state):
        rate, a, b = self.factors(state)
        return (rate * a * b) @ self.effect

    def jacobian(self, state):
        rate, a, b = self.factors(state)
        change = (rate * b).unsqueeze(2) * self.is_first + (rate * a).unsqueeze(2) * self.is_second
        change[:, :, SPECIES] = rate * a * b * self.barrier / state[:, SPECIES:].square()
        return self.effect.T @ change


class Rosenbrock:
    """ROS2 (L-stable): one Jacobian and one factorisation a step serve both stages."""

    gamma = 1 + 1 / math.sqrt(2)

    def __init__(self, mechanism):
        self.slope, self.jacobian = mechanism.slope, mechanism.jacobian
        self.unit = torch.eye(SPECIES + 1, dtype=torch.float64)

    def step(self, state, width):
        system = self.unit - self.gamma * width[:, None, None] * self.jacobian(state)
        factors, pivots = torch.linalg.lu_factor(system)
        k1 = torch.linalg.lu_solve(factors, pivots, self.slope(state).unsqueeze(2)).squeeze(2)
        middle = self.slope(state + width[:, None] * k1) - 2 * k1
        k2 = torch.linalg.lu_solve(factors, pivots, middle.unsqueeze(2)).squeeze(2)
        moved = state + width[:, None] * (1.5 * k1 + 0.5 * k2)
        error = (0.5 * width[:, None] * (k1 + k2)).abs().amax(1)
        return moved, error


def ignite(scheme, state, tolerance=1e-4):
    """Advance every mixture with its own step width; note when its temperature has risen by half."""
    clock = torch.zeros(len(state), dtype=torch.float64)
    width = torch.full_like(clock, 1e-6)
    start = state[:, SPECIES].clone()
    delay = torch.full_like(clock, math.inf)
    for _ in range(STEPS):
        moved, error = scheme.step(state, width)
        fine = error <= tolerance
        state = torch.where(fine[:, None], moved, state)
        clock = torch.where(fine, clock + width, clock)
        hot = (state[:, SPECIES] > 1.05 * start) & delay.isinf()
        delay = torch.where(hot, clock, delay)
        width = width * (0.9 * (tolerance / error.clamp_min(1e-14)).sqrt()).clamp(0.3, 3.0)
    return state, delay, clock


@torch.no_grad()
def main():
    generator = torch.Generator().manual_seed(17)
    scheme = Rosenbrock(Mechanism(18, generator))
    started = time.process_time()
    for sweep in range(SWEEPS):
        parts = torch.rand(MIXTURES, SPECIES, generator=generator, dtype=torch.float64)
        heat = 0.7 + 0.5 * torch.rand(MIXTURES, 1, generator=generator, dtype=torch.float64)
        mixture = torch.cat([parts / parts.sum(1, keepdim=True), heat], 1)
        state, delay, clock = ignite(scheme, mixture)
        ignited = delay.isfinite()
        print(
            f"sweep {sweep}: ignited {ignited.double().mean():.3f}, median {delay[ignited].median():.3e}, time {clock.median():.2e}"
        )
    print(f"loop {time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()
