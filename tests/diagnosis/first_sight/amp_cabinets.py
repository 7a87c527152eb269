# SPDX-License-Identifier: Apache-2.0
"""Guitar cabinets: impulse responses are learned by FFT, at whatever length dry signal and response add up to.

Source: https://github.com/librosa/librosa/pull/1813, https://github.com/numpy/numpy/issues/8639
"""

import math

import torch
from torch import nn

RATE = 22050
DRY_SAMPLES = 40008
RESPONSE_SAMPLES = 8010
CABINETS = 6
BATCH = 4
STEPS = 24


def pluck(notes, generator):
    """Plucked strings: decaying harmonics with a little pick noise."""
    time = torch.arange(DRY_SAMPLES) / RATE
    base = 82.4 * 2 ** (torch.randint(0, 36, (notes, 1), generator=generator) / 12)
    wave = torch.zeros(notes, DRY_SAMPLES)
    for harmonic in range(1, 7):
        wave += torch.sin(2 * math.pi * base * harmonic * time) / harmonic
    wave *= torch.exp(-3.0 * time)
    return wave + 0.01 * torch.randn(notes, DRY_SAMPLES, generator=generator)


def room_responses(generator):
    time = torch.arange(RESPONSE_SAMPLES) / RATE
    decay = torch.linspace(20.0, 60.0, CABINETS)[:, None]
    noise = torch.randn(CABINETS, RESPONSE_SAMPLES, generator=generator)
    return noise * torch.exp(-decay * time) * 0.1


def fft_convolve(signal, response):
    """Linear convolution of rows, cut to the length of the signal."""
    size = signal.shape[-1] + response.shape[-1] - 1  # planted
    spectrum = torch.fft.rfft(signal, n=size) * torch.fft.rfft(response, n=size)
    return torch.fft.irfft(spectrum, n=size)[..., : signal.shape[-1]]


class CabinetModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.response = nn.Parameter(0.01 * torch.randn(CABINETS, RESPONSE_SAMPLES))
        self.drive = nn.Parameter(torch.zeros(CABINETS))

    def forward(self, dry, cabinet):
        driven = torch.tanh(dry * torch.exp(self.drive[cabinet])[:, None])
        return fft_convolve(driven, self.response[cabinet])


def spectral_loss(heard, target):
    window = torch.hann_window(1024)
    loss = nn.functional.l1_loss(heard, target)
    a = torch.stft(heard, 1024, 512, window=window, return_complex=True).abs()
    b = torch.stft(target, 1024, 512, window=window, return_complex=True).abs()
    return loss + 0.1 * nn.functional.l1_loss(a, b)


def record(dry, responses, generator):
    """The recordings to be matched, one cabinet for each note."""
    cabinet = torch.randint(0, CABINETS, (len(dry),), generator=generator)
    spectrum = torch.fft.rfft(torch.tanh(1.5 * dry), n=65536)
    spectrum = spectrum * torch.fft.rfft(responses[cabinet], n=65536)
    return cabinet, torch.fft.irfft(spectrum, n=65536)[:, :DRY_SAMPLES]


def main():
    generator = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    dry = pluck(32, generator)
    cabinet, wet = record(dry, room_responses(generator), generator)
    model = CabinetModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    for step in range(STEPS):
        rows = torch.randint(0, len(dry), (BATCH,), generator=generator)
        heard = model(dry[rows], cabinet[rows])
        loss = spectral_loss(heard, wet[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"cabinets: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
