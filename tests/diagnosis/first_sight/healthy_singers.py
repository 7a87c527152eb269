# SPDX-License-Identifier: Apache-2.0
"""Singers apart from their band: masks of spectra, which Fourier transforms compute, forward and back."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Separator(nn.Module):
    def __init__(self, length=512, hop=128, width=24):
        super().__init__()
        self.length, self.hop = length, hop
        self.register_buffer("window", torch.hann_window(length))
        self.mask = nn.Sequential(
            nn.Conv2d(1, width, (7, 3), stride=(2, 1), padding=(3, 1)),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 1, (7, 3), stride=(2, 1), padding=(3, 1)),
        )

    def forward(self, song):
        spectrum = torch.stft(song, self.length, self.hop, window=self.window, return_complex=True)
        mask = self.mask(spectrum.abs().log1p().unsqueeze(1)).squeeze(1).sigmoid()
        return torch.istft(spectrum * mask, self.length, self.hop, window=self.window, length=song.shape[1])


def songs(count, batch=4, length=12_288):
    time = torch.arange(length) / 16_000
    for _ in range(count):
        singer = (6.2832 * (200 + 300 * torch.rand(batch, 1)) * time).sin()
        yield singer, singer + 0.5 * torch.randn(batch, length)


model = Separator().to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for singer, song in songs(16):
    loss = F.l1_loss(model(song), singer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
