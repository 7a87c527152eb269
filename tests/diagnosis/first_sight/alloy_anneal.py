# SPDX-License-Identifier: Apache-2.0
"""Ground-state search in a disordered magnetic alloy by simulated annealing.

Many replicas of a +-1 spin glass with long-range couplings are annealed side
by side; one spin per move is proposed in every replica.
"""

import time

import torch

torch.manual_seed(23)

SPINS = 384
REPLICAS = 96
SWEEPS = 48
HOT, COLD = 24.0, 1.5


def random_alloy():
    """Symmetric couplings of +-1 without self-interaction."""
    upper = torch.triu(torch.randint(0, 2, (SPINS, SPINS)).float() * 2 - 1, diagonal=1)
    return upper + upper.t()


def energy(spins, couplings):
    """Energy of each replica, -1/2 s J s."""
    return -0.5 * ((spins @ couplings) * spins).sum(dim=1)


class Annealer:
    def __init__(self, couplings):
        self.couplings = couplings
        self.spins = torch.randint(0, 2, (REPLICAS, SPINS)).float() * 2 - 1
        self.energy = energy(self.spins, couplings)
        self.best = self.energy.clone()

    def cost_of_flip(self, site):
        """Energy change of turning this spin over, for all replicas."""
        turned = self.spins.clone()  # planted
        turned[:, site] = -turned[:, site]  # planted
        return energy(turned, self.couplings) - self.energy  # planted

    def move(self, site, temperature, threshold):
        cost = self.cost_of_flip(site)
        accept = cost < temperature * threshold
        self.spins[:, site] *= 1 - 2 * accept.float()
        self.energy += cost * accept
        torch.minimum(self.best, self.energy, out=self.best)

    def sweep(self, temperature):
        order = torch.randperm(SPINS).tolist()
        thresholds = -torch.log(torch.rand(SPINS, REPLICAS))
        for site, threshold in zip(order, thresholds):
            self.move(site, temperature, threshold)


def cooling():
    ratio = (COLD / HOT) ** (1 / (SWEEPS - 1))
    return [HOT * ratio**k for k in range(SWEEPS)]


def overlap(spins):
    """Mean absolute overlap between the replicas."""
    q = (spins @ spins.t() / SPINS).abs()
    off_diagonal = q.sum() - q.diagonal().sum()
    return float(off_diagonal / (REPLICAS * (REPLICAS - 1)))


def main():
    couplings = random_alloy()
    annealer = Annealer(couplings)
    print(f"start: mean energy {annealer.energy.mean() / SPINS:.3f} per spin")
    launch = time.perf_counter()
    for number, temperature in enumerate(cooling()):
        annealer.sweep(temperature)
        if number % 12 == 11:
            print(
                f"T {temperature:6.2f}: mean {annealer.energy.mean() / SPINS:.4f}, "
                f"best {annealer.best.min() / SPINS:.4f}"
            )
    landed = time.perf_counter()
    check = energy(annealer.spins, couplings)
    print(
        f"bookkeeping error {float((check - annealer.energy).abs().max()):.1f}, overlap {overlap(annealer.spins):.3f}"
    )
    print(f"{(landed - launch) / SWEEPS:.2f} s per sweep")


if __name__ == "__main__":
    main()
