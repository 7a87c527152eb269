# SPDX-License-Identifier: Apache-2.0
"""Voices without the noise of traffic: spectra are products with a matrix of waves, where a Fourier transform takes a fraction.

Source: https://github.com/pytorch/pytorch/pull/106400, https://github.com/pytorch/pytorch/issues/31317
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Analysis(nn.Module):
    """Magnitudes of short pieces of sound, by frequency."""

    def __init__(self, length=1024, hop=200):
        super().__init__()
        self.length, self.hop = length, hop
        window = torch.hann_window(length)
        waves = torch.fft.rfft(torch.eye(length)).T
        self.register_buffer("window", window)
        self.register_buffer("basis", torch.cat([waves.real, waves.imag]).unsqueeze(1) * window)

    def forward(self, sound):
        padded = F.pad(sound.unsqueeze(1), (self.length // 2, self.length // 2), mode="reflect")
        real, imag = F.conv1d(padded, self.basis, stride=self.hop).chunk(2, dim=1)  # planted
        return (real.square() + imag.square() + 1e-8).sqrt()


class Cleaner(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enter = nn.Conv1d(1, width, 16, stride=8, padding=4)
        self.middle = nn.ModuleList(nn.Conv1d(width, width, 3, padding=2**n, dilation=2**n) for n in range(4))
        self.leave = nn.ConvTranspose1d(width, 1, 16, stride=8, padding=4)

    def forward(self, sound):
        hidden = self.enter(sound.unsqueeze(1))
        for layer in self.middle:
            hidden = hidden + F.relu(layer(hidden))
        return self.leave(hidden).squeeze(1)


def streets(count, batch=4, length=16_384):
    time = torch.arange(length) / 16_000
    for _ in range(count):
        pitch = 100 + 200 * torch.rand(batch, 1)
        voice = (6.2832 * pitch * time).sin() * (6.2832 * 3 * time).cos()
        yield voice, voice + 0.3 * torch.randn(batch, length)


analysis, model = Analysis(), Cleaner()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for voice, heard in streets(20):
    cleaned = model(heard)
    loss = F.l1_loss(cleaned, voice) + F.l1_loss(analysis(cleaned).log(), analysis(voice).log())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
