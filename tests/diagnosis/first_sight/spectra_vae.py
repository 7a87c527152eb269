# SPDX-License-Identifier: Apache-2.0
"""Variational autoencoder for stellar spectra with a cyclic KL weight."""

import math

import torch
import torch.nn.functional as F
from torch import nn

PIXELS, LATENT, BATCH = 512, 16, 64


class SpectrumVAE(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, width, 8, stride=4, padding=2),
            nn.GELU(),
            nn.Conv1d(width, 2 * width, 8, stride=4, padding=2),
            nn.GELU(),
            nn.Conv1d(2 * width, 4 * width, 8, stride=4, padding=2),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(4 * width * 8, 2 * LATENT),
        )
        self.expand = nn.Linear(LATENT, 4 * width * 8)
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (4 * width, 8)),
            nn.GELU(),
            nn.ConvTranspose1d(4 * width, 2 * width, 8, stride=4, padding=2),
            nn.GELU(),
            nn.ConvTranspose1d(2 * width, width, 8, stride=4, padding=2),
            nn.GELU(),
            nn.ConvTranspose1d(width, 1, 8, stride=4, padding=2),
        )

    def forward(self, flux):
        mean, log_variance = self.encoder(flux.unsqueeze(1)).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(self.expand(code)).squeeze(1), mean, log_variance


def spectra(count, generator):
    wavelength = torch.linspace(0, 1, PIXELS)
    continuum = 1 + torch.rand(count, 1, generator=generator) * (wavelength - 0.5)
    centers = torch.linspace(0.1, 0.9, 9).view(1, -1, 1)
    depth = 0.5 * torch.rand(count, 9, 1, generator=generator)
    lines = (depth * torch.exp(-(((wavelength - centers) / 0.01) ** 2))).sum(dim=1)
    return continuum - lines + 0.02 * torch.randn(count, PIXELS, generator=generator)


class Trainer:
    def __init__(self, model, flux, generator):
        self.model, self.flux, self.generator = model, flux, generator
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, fused=True)
        self.steps = 0

    def kl_weight(self):
        return 0.02 * min(1.0, 2 * (self.steps % 100) / 100)

    def epoch(self):
        self.model.train()
        sums = torch.zeros(2)
        order = torch.randperm(len(self.flux), generator=self.generator)
        for rows in order.split(BATCH):
            flux = self.flux[rows]
            rebuilt, mean, log_variance = self.model(flux)
            fit = F.mse_loss(rebuilt, flux) * PIXELS
            divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(dim=1).mean()
            loss = fit + self.kl_weight() * divergence
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.steps += 1
            sums += torch.stack([fit.detach(), divergence.detach()])
            if self.steps % 50 == 0 and not math.isfinite(loss.item()):
                raise RuntimeError(f"diverged at step {self.steps}")
        return (sums / math.ceil(len(self.flux) / BATCH)).tolist()


def main():
    torch.manual_seed(205)
    generator = torch.Generator().manual_seed(206)
    trainer = Trainer(SpectrumVAE(), spectra(3072, generator), generator)
    for epoch in range(8):
        fit, divergence = trainer.epoch()
        print(f"epoch {epoch}: reconstruction {fit:.3f}, divergence {divergence:.2f}")


if __name__ == "__main__":
    main()
