# SPDX-License-Identifier: Apache-2.0
"""Statistics: Hamiltonian Monte Carlo over the weights of a logistic model that tells stars from quasars, with
several chains at once. Every leapfrog step needs a fresh gradient over all objects. Prints acceptance and spread."""

import math

import torch
import torch.nn.functional as F

OBJECTS, COLOURS, CHAINS, DRAWS, LEAPS = 12_000, 24, 16, 190, 24


def survey(generator):
    features = torch.randn(OBJECTS, COLOURS, generator=generator)
    features[:, 0] = 1
    weights = 0.5 * torch.randn(COLOURS, generator=generator)
    chance = torch.sigmoid(features @ weights)
    return features, (torch.rand(OBJECTS, generator=generator) < chance).float(), weights


class Posterior:
    """Energy (minus the log-density) of each chain, and its gradient in closed form."""

    def __init__(self, features, label):
        self.features, self.label = features, label
        self.evidence = label @ features

    def gradient(self, position):
        logits = position @ self.features.t()
        return logits, logits.sigmoid() @ self.features - self.evidence + position

    def energy(self, position, logits):
        return F.softplus(logits).sum(1) - position @ self.evidence + 0.5 * position.square().sum(1)


class Sampler:
    def __init__(self, posterior, position, generator, size=0.008):
        self.posterior, self.position, self.generator, self.size = posterior, position, generator, size
        logits, self.gradient = posterior.gradient(position)
        self.energy = posterior.energy(position, logits)

    def draw(self):
        """The gradient at the end of the path is the one at the start of the next, so it is kept."""
        momentum = torch.randn(self.position.shape, generator=self.generator)
        before = self.energy + 0.5 * momentum.square().sum(1)
        position, gradient = self.position, self.gradient
        for _ in range(LEAPS):
            momentum = momentum - 0.5 * self.size * gradient
            position = position + self.size * momentum
            logits, gradient = self.posterior.gradient(position)
            momentum = momentum - 0.5 * self.size * gradient
        energy = self.posterior.energy(position, logits)
        after = energy + 0.5 * momentum.square().sum(1)
        accept = torch.rand(CHAINS, generator=self.generator).log() < before - after
        self.position = torch.where(accept[:, None], position, self.position)
        self.gradient = torch.where(accept[:, None], gradient, self.gradient)
        self.energy = torch.where(accept, energy, self.energy)
        return accept.float().mean().item()


def main():
    generator = torch.Generator().manual_seed(231)
    features, label, weights = survey(generator)
    start = weights + 0.05 * torch.randn(CHAINS, COLOURS, generator=generator)
    sampler = Sampler(Posterior(features, label), start, generator)
    accepted, kept = [], []
    for draw in range(DRAWS):
        accepted.append(sampler.draw())
        if draw >= DRAWS // 3:
            kept.append(sampler.position)
    drawn = torch.stack(kept).flatten(0, 1)
    error = (drawn.mean(0) - weights).abs().mean() * math.sqrt(OBJECTS)
    print(f"accepted {sum(accepted) / DRAWS:.2f}, spread {drawn.std(0).mean():.4f}, scaled error {error:.2f}")


if __name__ == "__main__":
    main()
