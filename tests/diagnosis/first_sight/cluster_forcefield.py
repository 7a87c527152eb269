# SPDX-License-Identifier: Apache-2.0
"""Learned potential for small atomic clusters: fit energies and forces, then run short dynamics with it."""

import time

import torch
from torch import nn

ATOMS, CENTERS, CUTOFF = 16, 20, 4.0


def reference(pos, epsilon=1.0, sigma=1.1):
    """Shifted Lennard-Jones energy used as ground truth."""
    i, j = torch.triu_indices(ATOMS, ATOMS, 1)
    s6 = (sigma / (pos[:, i] - pos[:, j]).norm(dim=-1).clamp(min=0.8)) ** 6
    return (4 * epsilon * (s6 * s6 - s6)).sum(1)


def make_clusters(count, generator):
    lattice = torch.cartesian_prod(*[torch.arange(3.0)] * 3)[:ATOMS] * 1.35
    pos = lattice + 0.05 * torch.randn(count, ATOMS, 3, generator=generator)
    pos.requires_grad_()
    energy = reference(pos)
    (grad,) = torch.autograd.grad(energy.sum(), pos)
    return pos.detach(), energy.detach(), -grad


class Potential(nn.Module):
    """Per-pair filters on Gaussian distance features, summed per atom, then an atomic energy network."""

    def __init__(self, width=48):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.8, CUTOFF, CENTERS))
        i, j = torch.triu_indices(ATOMS, ATOMS, 1)
        self.register_buffer("i", i)
        self.register_buffer("j", j)
        member = torch.arange(ATOMS)[:, None]
        self.register_buffer("incidence", ((member == i) | (member == j)).float())
        self.filter = nn.Sequential(nn.Linear(CENTERS, width), nn.Tanh(), nn.Linear(width, width))
        self.atom = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, pos):
        distance = torch.linalg.vector_norm(pos[:, self.i] - pos[:, self.j], dim=-1, keepdim=True)
        distance = distance.clamp(max=CUTOFF)
        features = torch.exp(-6.0 * (distance - self.centers).square())
        envelope = 0.5 * torch.cos(distance * (torch.pi / CUTOFF)) + 0.5
        messages = self.filter(features) * envelope
        return self.atom(self.incidence @ messages).sum((1, 2)) * self.scale + self.shift


def energy_and_forces(model, pos, training):
    pos = pos.detach().requires_grad_()
    energy = model(pos)
    (grad,) = torch.autograd.grad(energy.sum(), pos, create_graph=training)
    return energy, -grad


def fit(model, data, steps, batch, generator):
    pos, energy, force = data
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for n in range(steps):
        idx = torch.randint(len(pos), (batch,), generator=generator)
        e, f = energy_and_forces(model, pos[idx], training=True)
        loss_e = (e - energy[idx]).square().mean() / ATOMS
        loss_f = (f - force[idx]).square().mean()
        opt.zero_grad()
        (loss_e + 10.0 * loss_f).backward()
        opt.step()
        schedule.step()
        yield n, loss_e.item(), loss_f.item()


def velocity_verlet(model, pos, steps, dt=0.004):
    """The force at the end of a step starts the next one. Returns the drift of the total energy."""
    model.requires_grad_(False)
    velocity = torch.zeros_like(pos)
    energy, force = energy_and_forces(model, pos, training=False)
    initial = energy.detach().mean().item()
    for _ in range(steps):
        velocity = velocity + 0.5 * dt * force
        pos = pos + dt * velocity
        energy, force = energy_and_forces(model, pos, training=False)
        velocity = velocity + 0.5 * dt * force
    total = energy.detach() + 0.5 * velocity.square().sum((1, 2))
    return total.mean().item() - initial


def main(steps=280, batch=64):
    torch.manual_seed(29)
    generator = torch.Generator().manual_seed(29)
    data = make_clusters(2000, generator)
    model = Potential()
    model.shift.copy_(data[1].mean())
    model.scale.copy_(data[1].std() / ATOMS)
    start = time.perf_counter()
    for n, loss_e, loss_f in fit(model, data, steps, batch, generator):
        if n % 40 == 39:
            print(f"step {n + 1} energy {loss_e:.4f} force {loss_f:.4f}")
    print(f"loop {time.perf_counter() - start:.2f} s")
    print(f"energy drift {velocity_verlet(model, data[0][:8], 30):.5f}")


if __name__ == "__main__":
    main()
