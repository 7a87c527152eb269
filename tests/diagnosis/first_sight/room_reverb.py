# SPDX-License-Identifier: Apache-2.0
"""Fit a parametric room response so that dry speech-like signals match reverberant recordings."""

import math
import time

import torch
from torch import nn


class RoomResponse(nn.Module):
    """Early reflections plus an exponentially decaying, band-weighted noise tail."""

    def __init__(self, n_taps, n_bands=6, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.gain = nn.Parameter(torch.full((n_bands,), -2.0))
        self.decay = nn.Parameter(torch.full((n_bands,), 1.0))
        self.early = nn.Parameter(torch.zeros(64))
        noise = torch.fft.rfft(torch.randn(n_bands, n_taps, generator=generator))
        band = torch.arange(noise.shape[1]) * n_bands // noise.shape[1]
        keep = band.unsqueeze(0) == torch.arange(n_bands).unsqueeze(1)
        self.register_buffer("bands", torch.fft.irfft(noise * keep, n=n_taps))
        self.register_buffer("clock", torch.linspace(0.0, 1.0, n_taps))

    def forward(self):
        envelope = torch.exp(self.gain.unsqueeze(1) - 8.0 * self.decay.unsqueeze(1) * self.clock)
        tail = (envelope * self.bands).sum(dim=0)
        head = nn.functional.pad(self.early, (0, tail.numel() - self.early.numel()))
        direct = torch.zeros_like(tail)
        direct[0] = 1.0
        return direct + head + tail


class ReverbMatcher(nn.Module):
    def __init__(self, n_taps):
        super().__init__()
        self.room = RoomResponse(n_taps)

    def forward(self, dry):
        response = self.room()
        history = nn.functional.pad(dry.unsqueeze(1), (response.numel() - 1, 0))
        wet = nn.functional.conv1d(history, response.flip(0).view(1, 1, -1)).squeeze(1)  # planted
        return wet


class SpectralLoss(nn.Module):
    def __init__(self, sizes=(256, 1024)):
        super().__init__()
        self.sizes = sizes
        for size in sizes:
            self.register_buffer(f"window_{size}", torch.hann_window(size))

    def magnitude(self, signal, size):
        window = getattr(self, f"window_{size}")
        spectrum = torch.stft(signal, size, hop_length=size // 4, window=window, return_complex=True)
        return spectrum.abs().clamp_min(1e-5)

    def forward(self, estimate, targets):
        loss = 0.0
        for size, target in zip(self.sizes, targets):
            magnitude = self.magnitude(estimate, size)
            loss = loss + (magnitude - target).abs().mean() + 0.1 * (magnitude.log() - target.log()).abs().mean()
        return loss


def dry_clips(n_clips, length, generator):
    t = torch.arange(length) / 16000.0
    pitch = 90.0 + 160.0 * torch.rand(n_clips, 1, generator=generator)
    voice = sum(torch.sin(2 * math.pi * k * pitch * t) / k for k in range(1, 6))
    syllables = (torch.sin(2 * math.pi * 4.0 * t + 6.0 * torch.rand(n_clips, 1, generator=generator)) > 0).float()
    return voice * syllables * 0.2 + 0.003 * torch.randn(n_clips, length, generator=generator)


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(5)
    n_taps, length, batch, steps = 1536, 10240, 4, 75
    clips = dry_clips(32, length, generator)
    matcher, criterion = ReverbMatcher(n_taps), SpectralLoss()
    with torch.no_grad():
        recorded = ReverbMatcher(n_taps)
        recorded.room.decay.copy_(torch.linspace(0.6, 1.6, 6))
        recorded.room.gain.add_(0.7)
        wet_clips = torch.cat([recorded(part) for part in clips.split(batch)])
        targets = [criterion.magnitude(wet_clips, size) for size in criterion.sizes]
    optimizer = torch.optim.Adam(matcher.parameters(), lr=0.03)
    started = time.process_time()
    for step in range(steps):
        chosen = torch.randint(clips.shape[0], (batch,), generator=generator)
        loss = criterion(matcher(clips[chosen]), [target[chosen] for target in targets])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 14:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    print(f"loop cpu {time.process_time() - started:.2f}")


if __name__ == "__main__":
    main()
