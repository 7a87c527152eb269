# SPDX-License-Identifier: Apache-2.0
"""Streaming condition monitor: spectral features and an anomaly score per bearing."""

import time

import numpy as np
import torch
import torch.nn as nn

CHANNELS, RATE, FRAME, HOP, BANDS = 48, 12800, 1024, 256, 64


def band_matrix(bands=BANDS, frame=FRAME):
    """Triangular bands, logarithmically spaced from 40 Hz to Nyquist."""
    edges = np.geomspace(40.0, RATE / 2, bands + 2)
    freqs = np.fft.rfftfreq(frame, 1.0 / RATE)[:, None]
    rise = (freqs - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - freqs) / (edges[2:] - edges[1:-1])
    return np.clip(np.minimum(rise, fall), 0.0, None)


class SpectralFrontEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.from_numpy(np.hanning(FRAME)))  # planted
        self.register_buffer("bands", torch.from_numpy(band_matrix()))  # planted

    def forward(self, signal):
        frames = signal.unfold(-1, FRAME, HOP) * self.window
        spectrum = torch.fft.rfft(frames)
        power = spectrum.real.square() + spectrum.imag.square()
        return torch.log(power @ self.bands + 1e-6).float()


class NormalBehaviour(nn.Module):
    """Bottleneck network; the reconstruction error is the anomaly score."""

    def __init__(self, squeeze=8):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(BANDS, 48), nn.GELU(), nn.Linear(48, squeeze))
        self.decode = nn.Sequential(nn.Linear(squeeze, 48), nn.GELU(), nn.Linear(48, BANDS))

    def forward(self, features):
        centred = features - features.mean(dim=-1, keepdim=True)
        return (self.decode(self.encode(centred)) - centred).square().mean(dim=-1)


def sensor_feed(seconds, generator):
    """One second of all channels at a time; bearing 7 develops an impact train."""
    t = torch.arange(RATE) / RATE
    shaft = torch.sin(2 * np.pi * 29.5 * t)
    impacts = (torch.arange(RATE) % 143 < 4).float()
    for second in range(seconds):
        block = 0.3 * torch.randn(CHANNELS, RATE, generator=generator) + shaft
        block[7] += impacts * 3.0 * second / seconds
        yield second, block


@torch.inference_mode()
def watch(seconds=120):
    generator = torch.Generator().manual_seed(4)
    front, model = SpectralFrontEnd(), NormalBehaviour().eval()
    level = torch.zeros(CHANNELS)
    start = time.perf_counter()
    for second, block in sensor_feed(seconds, generator):
        score = model(front(block)).mean(dim=-1)
        level = score if second == 0 else torch.lerp(level, score, 0.1)
        if second % 40 == 39:
            z = (level - level.median()) / level.std()
            print(f"t={second + 1:4d} s  worst bearing {int(z.argmax())}  z={z.max().item():.3f}")
    print(f"{seconds} s of signal handled in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    torch.manual_seed(1)
    watch()
