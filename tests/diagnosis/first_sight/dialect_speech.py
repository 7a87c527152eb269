# SPDX-License-Identifier: Apache-2.0
"""Dialect recognition with speed perturbation of the waveforms (synthetic speech)."""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

RATE, SECONDS, DIALECTS = 16000, 1, 5
SPEEDS = (931, 967, 1033, 1069)
BATCH, STEPS = 12, 210


def windowed_sinc(origin, goal, zeros=24, rolloff=0.94):
    """Polyphase bank of windowed sinc filters that turn the rate `origin` into `goal`."""
    base = min(origin, goal) * rolloff
    half = math.ceil(zeros * origin / base)
    taps = torch.arange(-half, half + origin, dtype=torch.float64)[None] / origin
    phase = torch.arange(0, -goal, -1, dtype=torch.float64)[:, None] / goal
    t = ((phase + taps) * base).clamp(-zeros, zeros)
    window = torch.cos(t * math.pi / zeros / 2).square()
    bank = torch.sinc(t) * window * base / origin
    return bank.float()[:, None], half


def change_speed(waves, permille):
    """Play (batch, samples) faster or slower, returning the original number of samples."""
    common = math.gcd(permille, 1000)
    origin, goal = permille // common, 1000 // common
    bank, half = windowed_sinc(origin, goal)  # planted
    samples = waves.shape[1]
    padded = F.pad(waves, (half, half + origin))[:, None]
    played = F.conv1d(padded, bank, stride=origin)
    played = played.transpose(1, 2).flatten(1)[:, : goal * samples // origin]
    return F.pad(played, (0, max(0, samples - played.shape[1])))[:, :samples]


class DialectNet(nn.Module):
    def __init__(self, bands=40):
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        centre = torch.linspace(2, 180, bands)[:, None]
        self.register_buffer("bands", (1 - (torch.arange(201.0) - centre).abs() / 8).clamp_min(0))
        self.body = nn.Sequential(
            nn.Conv1d(bands, 64, 5, stride=2), nn.ReLU(), nn.Conv1d(64, 64, 5, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(64, DIALECTS)

    def forward(self, waves):
        spectrum = torch.stft(waves, 400, 160, window=self.window, return_complex=True)
        power = spectrum.real.square() + spectrum.imag.square()
        return self.head(self.body((self.bands @ power + 1e-4).log()).mean(2))


def synth_speech(generator):
    """Voiced frames whose formants move at a dialect-dependent pace."""
    t = torch.arange(RATE * SECONDS) / RATE
    while True:
        dialect = torch.randint(DIALECTS, (BATCH,), generator=generator)
        pitch = 110 + 60 * torch.rand(BATCH, 1, generator=generator)
        sweep = torch.sin(2 * math.pi * (1.5 + dialect[:, None]) * t) * 300
        voice = torch.sin(2 * math.pi * pitch * t) + 0.6 * torch.sin(2 * math.pi * (900 + sweep) * t)
        yield voice + 0.2 * torch.randn(BATCH, len(t), generator=generator), dialect


def main():
    torch.manual_seed(9)
    generator = torch.Generator().manual_seed(9)
    pool = [batch for batch, _ in zip(synth_speech(generator), range(12))]
    model = DialectNet()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, fused=True)
    losses = []
    started = time.process_time()
    for step in range(STEPS):
        waves, dialect = pool[step % len(pool)]
        speed = SPEEDS[int(torch.randint(len(SPEEDS), (), generator=generator))]
        loss = F.cross_entropy(model(change_speed(waves, speed)), dialect)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    elapsed = time.process_time() - started
    print(f"loss {torch.stack(losses[:12]).mean():.4f} -> {torch.stack(losses[-12:]).mean():.4f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()
