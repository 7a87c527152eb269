# SPDX-License-Identifier: Apache-2.0
"""Echoes of layers in the ground: the transforms have a prime length, 20,011, for which FFT is slow.

Source: https://github.com/numpy/numpy/issues/8639, https://github.com/scipy/scipy/pull/12978
"""

import torch

SAMPLES, WAVELET = 19_911, 101


def ricker(length, frequency=30.0, interval=0.001):
    t = (torch.arange(length) - length // 2) * interval
    a = (torch.pi * frequency * t).square()
    return (1 - 2 * a) * torch.exp(-a)


def record_shot(number, receivers=24):
    """What the receivers measure after one shot: the wavelet from layers at several depths, with noise."""
    generator = torch.Generator().manual_seed(number)
    traces = 0.05 * torch.randn(receivers, SAMPLES, generator=generator)
    for depth in torch.randint(500, SAMPLES - 500, (12,), generator=generator).tolist():
        traces[:, depth : depth + WAVELET] += ricker(WAVELET)
    return traces


class MatchedFilter:
    def __init__(self, wavelet, samples):
        self.samples = samples
        self.full = samples + len(wavelet) - 1
        self.length = self.full
        self.spectrum = torch.fft.rfft(wavelet.flip(0), n=self.length)

    def __call__(self, traces):
        spectra = torch.fft.rfft(traces, n=self.length)  # planted
        return torch.fft.irfft(spectra * self.spectrum, n=self.length)[..., : self.full]  # planted


def layers_of(response, threshold=0.6):
    stacked = response.mean(0)
    stacked = stacked / stacked.abs().max()
    peaks = torch.nn.functional.max_pool1d(stacked[None], 51, stride=1, padding=25)[0]
    return ((stacked == peaks) & (stacked > threshold)).nonzero().squeeze(1)


matched = MatchedFilter(ricker(WAVELET), SAMPLES)
found = 0
for shot in range(30):
    response = matched(record_shot(shot))
    found += len(layers_of(response))
print(f"{found} layers in 30 shots")
