# SPDX-License-Identifier: Apache-2.0
"""Discrete tokens for robot-arm trajectories (vector-quantised autoencoder).

Joint angles are encoded at a quarter of the time resolution; each code vector
is replaced by the nearest entry of a codebook that follows by moving averages.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(91)

JOINTS, HORIZON = 7, 128
CODES, CODE_DIM = 512, 32
BATCH, STEPS = 64, 50


def trajectories():
    """Smooth joint angles: sums of a few random sinusoids."""
    moment = torch.linspace(0, 1, HORIZON)
    rate = torch.rand(BATCH, JOINTS, 3, 1) * 25
    phase = torch.rand(BATCH, JOINTS, 3, 1) * 6.3
    size = torch.randn(BATCH, JOINTS, 3, 1) * 0.5
    return (size * torch.sin(rate * moment + phase)).sum(2)


class Codebook(nn.Module):
    def __init__(self, decay=0.97, commitment=0.25):
        super().__init__()
        self.decay, self.commitment = decay, commitment
        self.register_buffer("codes", torch.randn(CODES, CODE_DIM) * 0.3)
        self.register_buffer("usage", torch.ones(CODES))
        self.register_buffer("total", self.codes.clone())

    @torch.no_grad()
    def nearest(self, z):
        return (z[:, None, :] - self.codes).square().sum(-1).argmin(1)  # planted

    @torch.no_grad()
    def follow(self, z, index):
        count = torch.bincount(index, minlength=CODES).float()
        gathered = torch.zeros_like(self.total).index_add_(0, index, z)
        self.usage.lerp_(count, 1 - self.decay)
        self.total.lerp_(gathered, 1 - self.decay)
        self.codes.copy_(self.total / self.usage.clamp(min=1e-2)[:, None])

    def forward(self, z):
        index = self.nearest(z)
        quantised = self.codes[index]
        loss = self.commitment * F.mse_loss(z, quantised)
        if self.training:
            self.follow(z.detach(), index)
        return z + (quantised - z).detach(), index, loss


class Tokenizer(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(JOINTS, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv1d(width, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv1d(width, CODE_DIM, 3, padding=1),
        )
        self.codebook = Codebook()
        self.decoder = nn.Sequential(
            nn.Conv1d(CODE_DIM, width, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(width, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(width, JOINTS, 4, stride=2, padding=1),
        )

    def forward(self, angles):
        z = self.encoder(angles).transpose(1, 2)
        flat, index, commitment = self.codebook(z.reshape(-1, CODE_DIM))
        decoded = self.decoder(flat.view_as(z).transpose(1, 2))
        return F.mse_loss(decoded, angles), commitment, index


def perplexity(index):
    share = torch.bincount(index, minlength=CODES).float() / len(index)
    return float(torch.exp(-torch.xlogy(share, share).sum()))


def main():
    model = Tokenizer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begun = time.perf_counter()
    for step in range(1, STEPS + 1):
        error, commitment, index = model(trajectories())
        optimizer.zero_grad()
        (error + commitment).backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: error {error.item():.4f}, codes in use {perplexity(index):.1f}")
    print(f"{(time.perf_counter() - begun) / STEPS * 1e3:.0f} ms per step")


if __name__ == "__main__":
    main()
