# SPDX-License-Identifier: Apache-2.0
"""Whale call detection with a learnable Gabor front-end on raw hydrophone audio (LEAF style)."""

import math
import time

import torch
from torch import nn
from torch.nn import functional as F

RATE, SECONDS, BATCH, STEPS = 4000, 2, 8, 36
N_FILTERS, TAPS, SMOOTH_TAPS, HOP = 32, 65, 65, 40


class GaborFrontEnd(nn.Module):
    """Waveform -> log band energies: complex Gabor filters, squared modulus, Gaussian low-pass."""

    def __init__(self):
        super().__init__()
        centre = torch.linspace(math.log(60.0), math.log(1600.0), N_FILTERS).exp()
        self.omega = nn.Parameter(2 * math.pi * centre / RATE)
        self.log_width = nn.Parameter((0.35 * RATE / centre).clamp(4.0, TAPS / 4).log())
        self.log_smooth = nn.Parameter(torch.full((N_FILTERS,), math.log(SMOOTH_TAPS / 5)))
        self.register_buffer("filter_time", torch.arange(TAPS) - (TAPS - 1) / 2)
        self.register_buffer("smooth_time", torch.arange(SMOOTH_TAPS) - (SMOOTH_TAPS - 1) / 2)

    def bank(self):
        envelope = torch.exp(-0.5 * (self.filter_time / self.log_width.exp()[:, None]) ** 2)
        envelope = envelope / envelope.sum(1, keepdim=True)
        phase = self.omega[:, None] * self.filter_time
        return torch.cat([envelope * phase.cos(), envelope * phase.sin()]).unsqueeze(1)

    def lowpass(self):
        shape = torch.exp(-0.5 * (self.smooth_time / self.log_smooth.exp()[:, None]) ** 2)
        return (shape / shape.sum(1, keepdim=True)).unsqueeze(1)

    def forward(self, wave):
        real, imag = F.conv1d(wave, self.bank(), padding=TAPS // 2).chunk(2, dim=1)
        energy = real.square() + imag.square()
        smooth = F.conv1d(energy, self.lowpass(), padding=SMOOTH_TAPS // 2, groups=N_FILTERS)  # planted
        frames = smooth[..., ::HOP]  # planted
        return torch.log(frames.clamp(min=0.0) + 1e-5)


class Detector(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.front = GaborFrontEnd()
        self.norm = nn.InstanceNorm1d(N_FILTERS)
        self.body = nn.Sequential(
            nn.Conv1d(N_FILTERS, width, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, width, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, width, 5, padding=2),
            nn.ReLU(),
        )
        self.call = nn.Linear(2 * width, 3)

    def forward(self, wave):
        hidden = self.body(self.norm(self.front(wave)))
        return self.call(torch.cat([hidden.mean(2), hidden.amax(2)], dim=1))


def hydrophone(n, generator):
    """0: sea noise, 1: rising upcall, 2: pulsed low moan; all in coloured noise."""
    t = torch.arange(RATE * SECONDS) / RATE
    kind = torch.randint(3, (n,), generator=generator)
    onset, pitch, gain = torch.rand(3, n, 1, generator=generator)
    local = t - 0.2 - 0.8 * onset
    gate = torch.exp(-0.5 * ((local - 0.35) / 0.18) ** 2)
    upcall = torch.sin(2 * math.pi * (80 + 60 * pitch + 90 * local) * local)
    moan = torch.sin(2 * math.pi * (150 + 100 * pitch) * t) * (torch.sin(2 * math.pi * 9 * t) > 0)
    call = torch.where(kind[:, None] == 1, upcall, moan) * (kind[:, None] > 0)
    noise = torch.randn(n, RATE * SECONDS + 1, generator=generator)
    wave = (0.5 + gain) * gate * call + 0.7 * noise[:, 1:] + 0.5 * noise[:, :-1]
    return (wave / wave.std(1, keepdim=True)).unsqueeze(1), kind


def fit(model, clips, kinds, generator):
    front, rest = list(model.front.parameters()), [*model.body.parameters(), *model.call.parameters()]
    optimizer = torch.optim.Adam([{"params": front, "lr": 1e-3}, {"params": rest, "lr": 3e-3}], fused=True)
    for step in range(STEPS):
        pick = torch.randint(len(clips), (BATCH,), generator=generator)
        loss = F.cross_entropy(model(clips[pick]), kinds[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 12 == 11:
            print(f"step {step + 1:3d}  loss {loss.item():.4f}")


def main():
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(60)
    clips, kinds = hydrophone(600, generator)
    model = Detector()
    started = time.perf_counter()
    fit(model, clips[:520], kinds[:520], generator)
    elapsed = time.perf_counter() - started
    with torch.inference_mode():
        guess = torch.cat([model(part) for part in clips[520:].split(20)]).argmax(1)
    print(f"held-out accuracy {(guess == kinds[520:]).float().mean():.3f}")
    print(f"{STEPS} steps in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
