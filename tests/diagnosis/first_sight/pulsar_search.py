# SPDX-License-Identifier: Apache-2.0
"""Radio astronomy: matched filtering of dedispersed time series against a bank of pulse profiles.

Every observation is one long series per trial dispersion measure. A bank of pulse templates is correlated
with it in the frequency domain, the best response per trial is kept, and a small classifier learns to separate
pulses from interference by the shape of the responses.
"""

from dataclasses import dataclass

import torch
from torch import nn

torch.manual_seed(11)


@dataclass(frozen=True)
class Survey:
    samples: int = 59_953
    taps: int = 255
    templates: int = 6
    trials: int = 10
    observations: int = 44


CONFIG = Survey()


def template_bank(config):
    """Gaussian pulses of growing width with an exponential scattering tail, unit energy."""
    t = torch.arange(config.taps, dtype=torch.float32)
    rows = []
    for k in range(config.templates):
        width = 2.0 * 1.6**k
        core = torch.exp(-0.5 * ((t - config.taps / 3) / width) ** 2)
        tail = torch.exp(-(t - config.taps / 3).clamp(min=0) / (3 * width)) * (t >= config.taps / 3)
        rows.append(core + 0.3 * tail)
    bank = torch.stack(rows)
    return bank / bank.norm(dim=1, keepdim=True)


def observe(config, bank):
    """Noise, and in half of the trials either a pulse or a square burst of interference."""
    series = torch.randn(config.trials, config.samples)
    label = torch.zeros(config.trials, dtype=torch.long)
    for trial in range(config.trials):
        at = int(torch.randint(1000, config.samples - 1000, ()))
        if trial % 2 == 0:
            shape = bank[int(torch.randint(0, config.templates, ()))]
            series[trial, at : at + config.taps] += 14.0 * shape
            label[trial] = 1
        elif trial % 4 == 1:
            series[trial, at : at + 40] += 2.5
    return series, label


class MatchedFilter:
    """Linear correlation of every series with every template through the real FFT."""

    def __init__(self, bank, samples):
        self.bank = bank
        self.samples = samples
        self.taps = bank.shape[1]
        full = samples + self.taps - 1
        self.size = full  # planted
        self.bank_spectrum = torch.fft.rfft(bank, self.size).conj()

    def __call__(self, series):
        spectrum = torch.fft.rfft(series, self.size)
        product = spectrum[:, None] * self.bank_spectrum
        return torch.fft.irfft(product, self.size)[..., : self.samples]


def summarise(response, top=8):
    """Largest responses per template in units of the series' own scatter."""
    scale = response.std(dim=-1, keepdim=True)
    blocks = (response / scale)[..., : response.shape[-1] // 256 * 256]
    peaks = blocks.unflatten(-1, (-1, 256)).amax(-1)
    return peaks.topk(top, dim=-1).values.flatten(1)


class Verdict(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(features), nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.layers(x)


def search(config):
    bank = template_bank(config)
    matched = MatchedFilter(bank, config.samples)
    verdict = Verdict(config.templates * 8)
    optimizer = torch.optim.Adam(verdict.parameters(), lr=3e-3)
    right = total = 0
    strongest = 0.0
    for observation in range(config.observations):
        series, label = observe(config, bank)
        features = summarise(matched(series))
        logits = verdict(features)
        loss = nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((logits.argmax(1) == label).sum())
        total += len(label)
        strongest = max(strongest, float(features.max()))
    return right / total, strongest, loss.item()


if __name__ == "__main__":
    accuracy, strongest, loss = search(CONFIG)
    print(f"accuracy {accuracy:.3f} strongest {strongest:.3f} loss {loss:.3f}")
