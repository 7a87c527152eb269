# SPDX-License-Identifier: Apache-2.0
"""Orbits: masses are fitted through a symplectic integrator, in double precision because energy must be kept over many steps."""

import torch

BODIES, MOMENTS, STEP = 160, 12, 1e-4
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


def acceleration(places, masses):
    apart = torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist")
    pull = masses / (apart.square() + 1e-2).pow(1.5)
    return pull @ places - pull.sum(-1, keepdim=True) * places


def simulate(places, speeds, masses):
    pull = acceleration(places, masses)
    for _ in range(MOMENTS):
        speeds = speeds + 0.5 * STEP * pull
        places = places + STEP * speeds
        pull = acceleration(places, masses)
        speeds = speeds + 0.5 * STEP * pull
    return places, speeds


start = torch.randn(8, BODIES, 3)
speeds = 0.1 * torch.randn(8, BODIES, 3)
true = torch.rand(8, 1, BODIES) + 0.5
with torch.no_grad():
    observed, _ = simulate(start, speeds, true)
logarithm = torch.zeros(8, 1, BODIES, requires_grad=True)
optimizer = torch.optim.Adam([logarithm], lr=0.05)
for step in range(15):
    places, _ = simulate(start, speeds, logarithm.exp())
    loss = (places - observed).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
