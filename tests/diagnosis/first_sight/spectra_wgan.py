# SPDX-License-Identifier: Apache-2.0
"""Generative chemistry: a Wasserstein GAN with gradient penalty imitates Raman spectra.

The critic takes several steps per generator step; its gradient with respect to the spectra must have norm
one between real and generated samples, which differentiates through a gradient.
"""

import torch
from torch import nn

torch.manual_seed(43)

BINS, NOISE, WIDTH = 512, 64, 512
BATCH, CRITIC_STEPS, ROUNDS = 192, 3, 40


def raman_library(count):
    """Sums of Lorentzian lines at molecule-like positions over a sloping background."""
    axis = torch.linspace(0, 1, BINS)
    prototype = torch.rand(6, 5)
    kind = torch.randint(0, 6, (count,))
    spectra = torch.rand(count, 1) * 0.2 * (1 - axis)
    for line in range(5):
        centre = prototype[kind, line, None] + 0.004 * torch.randn(count, 1)
        width = 0.004 + 0.01 * torch.rand(count, 1)
        spectra = spectra + torch.rand(count, 1) / (1 + ((axis - centre) / width) ** 2)
    return spectra / spectra.amax(dim=1, keepdim=True)


def perceptron(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, outputs)
    )


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = perceptron(NOISE, BINS)

    def forward(self, count):
        return torch.sigmoid(self.layers(torch.randn(count, NOISE)))


def gradient_penalty(critic, real, fake):
    mix = torch.rand(real.shape[0], 1)
    between = torch.lerp(real, fake, mix).requires_grad_(True)
    score = critic(between).sum()
    (slope,) = torch.autograd.grad(score, between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


class Duel:
    def __init__(self, library):
        self.library = library
        self.generator, self.critic = Generator(), perceptron(BINS, 1)
        self.of_generator = torch.optim.Adam(self.generator.parameters(), lr=2e-4, betas=(0.0, 0.9))
        self.of_critic = torch.optim.Adam(self.critic.parameters(), lr=2e-4, betas=(0.0, 0.9))

    def critic_step(self):
        real = self.library[torch.randint(0, len(self.library), (BATCH,))]
        with torch.no_grad():
            fake = self.generator(BATCH)
        on_real, on_fake = self.critic(torch.cat([real, fake])).chunk(2)
        distance = on_real.mean() - on_fake.mean()
        loss = -distance + 10.0 * gradient_penalty(self.critic, real, fake)
        self.of_critic.zero_grad()
        loss.backward()
        self.of_critic.step()
        return distance.item()

    def generator_step(self):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.generator(BATCH)).mean()
        self.of_generator.zero_grad()
        loss.backward()
        self.of_generator.step()
        self.critic.requires_grad_(True)

    def round(self):
        for _ in range(CRITIC_STEPS):
            distance = self.critic_step()
        self.generator_step()
        return distance


if __name__ == "__main__":
    duel = Duel(raman_library(4096))
    distances = []
    for turn in range(ROUNDS):
        distances.append(duel.round())
    with torch.no_grad():
        brightness = duel.generator(256).mean().item()
    print(f"distance {distances[0]:.3f} {distances[-1]:.3f} mean intensity {brightness:.3f}")
