# SPDX-License-Identifier: Apache-2.0
"""Argon in a periodic box: the list of neighbours has a skin, but all pairs are searched again at each step.

Source: merged Luthaf/vesin pull request 148 ("verlet list"), jax-md issue 13 on Verlet lists.
"""

import torch

ATOMS, BOX, CUTOFF, SKIN, STEP = 1400, 14.0, 2.5, 0.4, 0.002


class Argon:
    def __init__(self) -> None:
        side = round(ATOMS ** (1 / 3)) + 1
        grid = torch.arange(side) * (BOX / side)
        self.places = torch.cartesian_prod(grid, grid, grid)[:ATOMS].clone()
        self.speeds = 0.5 * torch.randn(ATOMS, 3)
        self.find_neighbours()
        self.forces = self.compute_forces()

    def shortest(self, offset: torch.Tensor) -> torch.Tensor:
        return offset - BOX * (offset / BOX).round()

    def find_neighbours(self) -> None:
        offset = self.shortest(self.places[:, None] - self.places[None])  # planted
        near = offset.square().sum(2) < (CUTOFF + SKIN) ** 2  # planted
        self.first, self.second = near.triu(1).nonzero(as_tuple=True)  # planted

    def compute_forces(self) -> torch.Tensor:
        offset = self.shortest(self.places[self.first] - self.places[self.second])
        squared = offset.square().sum(1)
        power = squared.clamp(min=0.6).reciprocal() ** 3
        pull = (48 * power * (power - 0.5) / squared) * (squared < CUTOFF**2)
        force = pull[:, None] * offset
        forces = torch.zeros_like(self.places)
        forces.index_add_(0, self.first, force)
        forces.index_add_(0, self.second, -force)
        return forces

    def advance(self, step: int) -> None:
        self.speeds += 0.5 * STEP * self.forces
        self.places += STEP * self.speeds
        self.find_neighbours()
        self.forces = self.compute_forces()
        self.speeds += 0.5 * STEP * self.forces


torch.manual_seed(0)
argon = Argon()
energies = []
for step in range(20):
    argon.advance(step)
    energies.append(0.5 * argon.speeds.square().sum())
print(f"kinetic energy {torch.stack(energies).mean().item():.1f}")
