# SPDX-License-Identifier: Apache-2.0
"""Recognises speech with masks of random bands and times on spectra of new sound; filters are made once, and kept."""

import torch
from torch import nn

RATE, BANDS, TOKENS = 8000, 40, 30


def mel_filters(points, bands, rate):
    def to_mel(frequency):
        return 2595 * torch.log10(1 + frequency / 700)

    edges = 700 * (10 ** (torch.linspace(0, float(to_mel(torch.tensor(rate / 2))), bands + 2) / 2595) - 1)
    frequencies = torch.linspace(0, rate / 2, points)
    rising = (frequencies[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies[:, None]) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0)


class Spectra(nn.Module):
    def __init__(self, points=256, hop=80):
        super().__init__()
        self.points, self.hop = points, hop
        self.register_buffer("window", torch.hann_window(points))
        self.register_buffer("filters", mel_filters(points // 2 + 1, BANDS, RATE))

    def forward(self, sound):
        spectrum = torch.stft(sound, self.points, self.hop, window=self.window, return_complex=True)
        return (spectrum.abs().square().transpose(1, 2) @ self.filters + 1e-6).log()


class Masks(nn.Module):
    def __init__(self, widest=(12, 30)):
        super().__init__()
        self.widest = widest

    def forward(self, spectra):
        if not self.training:
            return spectra
        for axis, widest in zip((2, 1), self.widest, strict=True):
            size = spectra.shape[axis]
            start = torch.randint(size - widest, (len(spectra), 1))
            width = torch.randint(1, widest, (len(spectra), 1))
            place = torch.arange(size)
            masked = (place >= start) & (place < start + width)
            spectra = spectra.masked_fill(masked[:, None] if axis == 2 else masked[..., None], 0.0)
        return spectra


class Recogniser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.front = nn.Sequential(Spectra(), Masks())
        self.thin = nn.Conv1d(BANDS, width, 5, stride=2, padding=2)
        self.recurrent = nn.LSTM(width, width, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, TOKENS)

    def forward(self, sound):
        hidden = self.thin(self.front(sound).transpose(1, 2)).relu().transpose(1, 2)
        return self.head(self.recurrent(hidden)[0]).log_softmax(-1)


torch.manual_seed(0)
model = Recogniser()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
criterion = nn.CTCLoss()
for step in range(14):
    sound, words = torch.randn(8, RATE), torch.randint(1, TOKENS, (8, 12))
    chances = model(sound).transpose(0, 1)
    loss = criterion(chances, words, torch.full((8,), len(chances)), torch.full((8,), 12))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
