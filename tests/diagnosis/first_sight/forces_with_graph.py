# SPDX-License-Identifier: Apache-2.0
"""Molecular dynamics with a learned energy: forces are computed with a graph for their own gradients, as in training.

Source: merged deepmodeling/deepmd-kit pull request 4006 ("Remove force graph during inference"),
NVIDIA/nvalchemi-toolkit issue 173, atomistic-machine-learning/schnetpack issue 279.
"""

import torch
from torch import nn

ATOMS, REACH = 96, 3.0


class Energy(nn.Module):
    def __init__(self, kinds=4, width=48, centres=24):
        super().__init__()
        self.kinds = nn.Embedding(kinds, width)
        self.register_buffer("centres", torch.linspace(0, REACH, centres))
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(centres, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(2)
        )
        self.updates = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.SiLU()) for _ in range(2))
        self.leave = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, places, kinds, first, second):
        distances = (places[first] - places[second]).square().sum(-1, keepdim=True).sqrt()
        smeared = torch.exp(-4 * (distances - self.centres).square())
        within = 0.5 * (torch.cos(torch.pi * distances.clamp(max=REACH) / REACH) + 1)
        atoms = self.kinds(kinds)
        for filters, update in zip(self.filters, self.updates, strict=True):
            messages = atoms[second] * filters(smeared) * within
            atoms = atoms + update(torch.zeros_like(atoms).index_add(0, first, messages))
        return self.leave(atoms).sum()


class Potential(nn.Module):
    def __init__(self, energy):
        super().__init__()
        self.energy = energy

    def forward(self, places, kinds, first, second):
        places = places.detach().requires_grad_()
        energy = self.energy(places, kinds, first, second)
        (slope,) = torch.autograd.grad(energy, places, create_graph=True)  # planted
        return energy, -slope


def run(potential, places, kinds, steps=100, interval=0.002):
    first, second = (~torch.eye(ATOMS, dtype=torch.bool)).nonzero().T
    speeds = torch.zeros_like(places)
    energy, forces = potential(places, kinds, first, second)
    trajectory = []
    for step in range(steps):
        speeds = speeds + 0.5 * interval * forces.detach()
        places = places + interval * speeds
        energy, forces = potential(places, kinds, first, second)  # planted
        speeds = speeds + 0.5 * interval * forces.detach()
        if step % 10 == 9:
            trajectory.append((places.clone(), energy.item()))
    return trajectory


torch.manual_seed(0)
run(Potential(Energy().requires_grad_(False)), 6 * torch.rand(ATOMS, 3), torch.randint(4, (ATOMS,)))
