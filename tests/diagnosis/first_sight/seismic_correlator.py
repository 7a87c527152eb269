# SPDX-License-Identifier: Apache-2.0
"""Ambient-noise cross-correlation between the stations of a seismic array."""

import argparse
import math

import torch


def synthetic_window(generator, stations, npts, delays):
    """A common noise wavefield that reaches each station with its own delay."""
    wavefield = torch.randn(npts + int(delays.max()), generator=generator)
    traces = torch.stack([wavefield[int(d) : int(d) + npts] for d in delays])
    traces += 0.7 * torch.randn(stations, npts, generator=generator)
    return traces


class Correlator:
    def __init__(self, stations, npts, rate, band=(0.1, 4.0)):
        self.npts = npts
        self.rate = rate
        self.nfft = 2 * npts - 1  # planted
        self.first, self.second = torch.triu_indices(stations, stations, offset=1)
        freqs = torch.fft.rfftfreq(self.nfft, d=1.0 / rate)
        edge = 0.05
        rise = torch.sigmoid((freqs - band[0]) / edge)
        fall = torch.sigmoid((band[1] - freqs) / edge)
        self.bandpass = rise * fall
        self.taper = torch.hann_window(npts).clamp_max(0.2) / 0.2
        self.stack = torch.zeros(len(self.first), self.nfft // 2 + 1, dtype=torch.complex64)
        self.windows = 0

    def preprocess(self, traces):
        traces = traces - traces.mean(dim=1, keepdim=True)
        limit = 3.0 * traces.std(dim=1, keepdim=True)
        return torch.clamp(traces, -limit, limit) * self.taper

    def add(self, traces):
        spectra = torch.fft.rfft(self.preprocess(traces), n=self.nfft)
        amplitude = spectra.abs().add_(1e-6)
        spectra *= self.bandpass / amplitude
        self.stack.addcmul_(spectra[self.first], spectra[self.second].conj())
        self.windows += 1

    def correlograms(self, max_lag_seconds):
        lags = int(max_lag_seconds * self.rate)
        full = torch.fft.irfft(self.stack / self.windows, n=self.nfft)
        return torch.cat([full[:, -lags:], full[:, : lags + 1]], dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stations", type=int, default=10)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--windows", type=int, default=200)
    args = parser.parse_args()

    generator = torch.Generator().manual_seed(3)
    npts = args.minutes * 60 * args.rate
    delays = torch.randint(0, 60, (args.stations,), generator=generator)
    correlator = Correlator(args.stations, npts, args.rate)

    for window in range(args.windows):
        traces = synthetic_window(generator, args.stations, npts, delays)
        correlator.add(traces)
        if (window + 1) % 40 == 0:
            print(f"stacked {window + 1} windows")

    ccf = correlator.correlograms(max_lag_seconds=5.0)
    center = ccf.shape[1] // 2
    found = ccf.argmax(dim=1) - center
    expected = delays[correlator.second] - delays[correlator.first]
    hits = (found.abs() == expected.abs()).float().mean().item()
    snr = ccf.max(dim=1).values / ccf.std(dim=1)
    print(
        f"pairs {len(found)}, delay recovered {hits:.3f}, median SNR {snr.median().item():.1f}, "
        f"log energy {math.log10(ccf.square().sum().item()):.3f}"
    )


if __name__ == "__main__":
    main()
