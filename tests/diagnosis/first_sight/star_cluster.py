# SPDX-License-Identifier: Apache-2.0
"""Leapfrog integration of a softened star cluster with an energy check."""

import argparse
import math

import torch


def plummer(stars, generator):
    """Positions and velocities of a Plummer sphere in virial units."""
    u = torch.rand(stars, generator=generator, dtype=torch.double).clamp(0.02, 0.98)
    radius = (u.pow(-2 / 3) - 1).rsqrt()
    direction = torch.nn.functional.normalize(torch.randn(stars, 3, generator=generator, dtype=torch.double), dim=1)
    position = radius.unsqueeze(1) * direction
    speed = 0.35 * math.sqrt(2) * (1 + radius.square()).pow(-0.25)
    heading = torch.nn.functional.normalize(torch.randn(stars, 3, generator=generator, dtype=torch.double), dim=1)
    return position, speed.unsqueeze(1) * heading


class Gravity:
    def __init__(self, masses, softening):
        self.masses = masses
        self.eps2 = softening**2

    def _inverse_distance(self, position):
        squared = position.square().sum(dim=1)
        gram = position @ position.T
        distance2 = gram.mul_(-2).add_(squared).add_(squared.unsqueeze(1)).clamp_(min=0).add_(self.eps2)
        return distance2.rsqrt_()

    def acceleration(self, position):
        inverse = self._inverse_distance(position)
        weight = inverse.pow(3).mul_(self.masses)
        return weight @ position - weight.sum(dim=1, keepdim=True) * position

    def energy(self, position, velocity):
        kinetic = 0.5 * (self.masses * velocity.square().sum(dim=1)).sum()
        pair = self._inverse_distance(position).fill_diagonal_(0.0)
        return (kinetic - 0.5 * self.masses @ pair @ self.masses).item()


@torch.no_grad()
def integrate(gravity, position, velocity, step, count, every):
    # single precision loses the energy error (1e-6) that the run is judged by
    reference = gravity.energy(position, velocity)
    acceleration = gravity.acceleration(position)
    for n in range(1, count + 1):
        velocity = velocity + 0.5 * step * acceleration
        position = position + step * velocity
        acceleration = gravity.acceleration(position)
        velocity = velocity + 0.5 * step * acceleration
        if n % every == 0:
            drift = (gravity.energy(position, velocity) - reference) / abs(reference)
            half_mass = position.norm(dim=1).median().item()
            print(f"t={n * step:.3f}  relative energy error {drift:+.3e}  half-mass radius {half_mass:.4f}")
    return position, velocity


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stars", type=int, default=1200)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(202)
    position, velocity = plummer(args.stars, generator)
    gravity = Gravity(torch.full((args.stars,), 1.0 / args.stars, dtype=torch.double), softening=0.05)
    integrate(gravity, position, velocity, step=2e-3, count=args.steps, every=args.steps // 5)


if __name__ == "__main__":
    main()
