# SPDX-License-Identifier: Apache-2.0
"""Genome model with filters as long as the sequence: real signals go through complex Fourier transforms.

Source: merged iver56/torch-audiomentations pull request 73 (rfft instead of fft), apple/axlearn pull request 1221.
"""

import torch
from torch import nn


class LongFilter(nn.Module):
    """A causal convolution of each channel with a learned filter of the sequence's length."""

    def __init__(self, channels, length):
        super().__init__()
        decay = torch.exp(-torch.linspace(0, 6, length))
        self.taps = nn.Parameter(0.1 * torch.randn(channels, length) * decay)
        self.skip = nn.Parameter(torch.ones(channels, 1))

    def forward(self, signal):
        length = signal.shape[-1]
        spectrum = torch.fft.fft(signal, n=2 * length)  # planted
        response = torch.fft.fft(self.taps, n=2 * length)  # planted
        filtered = torch.fft.ifft(spectrum * response).real[..., :length]  # planted
        return filtered + self.skip * signal


class Layer(nn.Module):
    def __init__(self, channels, length):
        super().__init__()
        self.enter = nn.Conv1d(channels, 2 * channels, 1)
        self.filter = LongFilter(channels, length)
        self.leave = nn.Conv1d(channels, channels, 1)

    def forward(self, signal):
        gate, value = self.enter(signal).chunk(2, dim=1)
        return signal + self.leave(gate.sigmoid() * self.filter(value))


def build(bases=4, channels=32, length=2048, layers=2, marks=8):
    body = [Layer(channels, length) for _ in range(layers)]
    return nn.Sequential(nn.Conv1d(bases, channels, 7, padding=3), *body, nn.Conv1d(channels, marks, 1))


torch.manual_seed(0)
model = build()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
for step in range(12):
    genome = nn.functional.one_hot(torch.randint(0, 4, (8, 2048)), 4).float().transpose(1, 2)
    peaks = (torch.rand(8, 8, 2048) < 0.1).float()
    loss = nn.functional.binary_cross_entropy_with_logits(model(genome), peaks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
