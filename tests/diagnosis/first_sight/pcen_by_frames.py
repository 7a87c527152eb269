# SPDX-License-Identifier: Apache-2.0
"""Bird calls: energies are smoothed over time frame by frame, in a front end that learns how much.

Source: pytorch/pytorch issue 70555 (a moving average by a Python loop is inefficient), the smoother of
merged asteroid-team/asteroid-filterbanks pull request 12.
"""

import torch
from torch import nn


class Smoother(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.04))

    def forward(self, energies):
        weight = self.weight.clamp(0.01, 1)
        smooth = [energies[..., :1]]
        for frame in range(1, energies.shape[-1]):  # planted
            smooth.append(weight * energies[..., frame : frame + 1] + (1 - weight) * smooth[-1])  # planted
        return torch.cat(smooth, -1)


class Energies(nn.Module):
    """Per-channel energy normalisation with trainable parameters."""

    def __init__(self, bands):
        super().__init__()
        self.smoother = Smoother()
        self.gain, self.bias = nn.Parameter(torch.full((bands, 1), 0.96)), nn.Parameter(torch.full((bands, 1), 2.0))
        self.root = nn.Parameter(torch.full((bands, 1), 0.5))

    def forward(self, energies):
        smooth = self.smoother(energies)  # planted
        levelled = energies * (smooth + 1e-6) ** -self.gain + self.bias
        return levelled**self.root - self.bias**self.root


class Listener(nn.Module):
    def __init__(self, bands=40, width=64, species=30):
        super().__init__()
        self.energies = Energies(bands)
        self.body = nn.Sequential(
            nn.Conv1d(bands, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, species)

    def forward(self, energies):
        return self.head(self.body(self.energies(energies)).amax(-1))


torch.manual_seed(0)
model = Listener()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    energies, species = torch.rand(16, 40, 160), torch.randint(30, (16,))
    loss = nn.functional.cross_entropy(model(energies), species)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
