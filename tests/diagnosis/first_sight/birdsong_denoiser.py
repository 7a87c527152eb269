# SPDX-License-Identifier: Apache-2.0
"""Mask-based denoiser for field recordings of birds, trained on mixtures made on the fly."""

import math
import time

import torch
import torch.nn.functional as F
from torch import nn

RATE, SECONDS, FFT, HOP = 16_000, 1.0, 512, 128
LENGTH = int(RATE * SECONDS)


def synth_songs(count, generator):
    """Frequency-modulated chirps with harmonics and a syllable envelope."""
    t = torch.arange(LENGTH) / RATE
    base = 1500 + 2500 * torch.rand(count, 1, generator=generator)
    depth = 600 * torch.rand(count, 1, generator=generator)
    rate = 4 + 10 * torch.rand(count, 1, generator=generator)
    phase = 2 * math.pi * (base * t + depth / (2 * math.pi * rate) * torch.sin(2 * math.pi * rate * t))
    envelope = torch.sin(math.pi * rate * t).clamp(min=0)
    return envelope * (torch.sin(phase) + 0.3 * torch.sin(2 * phase))


class MixtureSource:
    """Clean songs are kept in memory; noise and level differ at every draw."""

    def __init__(self, songs, generator):
        self.songs, self.generator = songs, generator

    def draw(self, count):
        g = self.generator
        clean = self.songs[torch.randint(len(self.songs), (count,), generator=g)]
        noise = torch.randn(count, LENGTH, generator=g)
        noise = noise + 0.9 * F.pad(noise, (1, 0))[:, :-1]
        snr = torch.empty(count, 1).uniform_(-5, 10, generator=g)
        gain = (clean.square().mean(1, keepdim=True) / noise.square().mean(1, keepdim=True)).sqrt()
        return clean, clean + noise * gain * 10 ** (-snr / 20)


class MaskNet(nn.Module):
    """Dilated convolutions over time on log magnitudes; one gain per bin and frame."""

    def __init__(self, bins=FFT // 2 + 1, width=160, dilations=(1, 2, 4, 8)):
        super().__init__()
        self.enter = nn.Conv1d(bins, width, 1)
        self.blocks = nn.ModuleList(nn.Conv1d(width, width, 3, padding=d, dilation=d) for d in dilations)
        self.leave = nn.Conv1d(width, bins, 1)
        self.register_buffer("window", torch.hann_window(FFT), persistent=False)

    def forward(self, wave):
        spec = torch.stft(wave, FFT, HOP, window=self.window, return_complex=True)
        x = self.enter(torch.log1p(spec.abs()))
        for block in self.blocks:
            x = x + F.relu(block(x))
        masked = spec * torch.sigmoid(self.leave(x))
        return torch.istft(masked, FFT, HOP, window=self.window, length=wave.shape[-1])


def si_sdr(estimate, target):
    scale = (estimate * target).sum(-1, keepdim=True) / target.square().sum(-1, keepdim=True).clamp(min=1e-8)
    signal = scale * target
    error = estimate - signal
    return 10 * torch.log10(signal.square().sum(-1) / error.square().sum(-1).clamp(min=1e-8))


class Trainer:
    def __init__(self, model, source, batch=16, accumulate=2, lr=2e-3):
        self.model, self.source, self.batch, self.accumulate = model, source, batch, accumulate
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.opt, lr, total_steps=400)

    def step(self):
        self.opt.zero_grad()
        mean = 0.0
        for _ in range(self.accumulate):
            clean, noisy = self.source.draw(self.batch)
            loss = -si_sdr(self.model(noisy), clean).mean() / self.accumulate
            loss.backward()
            mean -= loss.item()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        if not math.isfinite(norm.item()):
            raise RuntimeError("gradient is not finite")
        self.opt.step()
        self.schedule.step()
        return mean

    @torch.inference_mode()
    def evaluate(self, count=32):
        clean, noisy = self.source.draw(count)
        return (si_sdr(self.model(noisy), clean) - si_sdr(noisy, clean)).mean().item()


def main(steps=40):
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(4)
    trainer = Trainer(MaskNet(), MixtureSource(synth_songs(200, generator), generator))
    start = time.perf_counter()
    for n in range(steps):
        quality = trainer.step()
        if n % 10 == 9:
            print(f"step {n + 1} SI-SDR {quality:.3f} dB")
    print(f"loop {time.perf_counter() - start:.2f} s")
    print(f"improvement {trainer.evaluate():.3f} dB")


if __name__ == "__main__":
    main()
