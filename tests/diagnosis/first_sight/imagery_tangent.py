# SPDX-License-Identifier: Apache-2.0
"""Motor imagery decoding from EEG: log-Euclidean covariance features and a linear probe."""

import time

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, SAMPLES, CLASSES = 64, 1536, 4
BANDS = ((4, 8), (8, 13), (13, 20), (20, 30))
TRIALS, BATCH, RATE = 1760, 16, 128


def synth_trials(generator):
    """Band-limited sources mixed over the scalp; the imagined limb changes some source powers."""
    mixing = torch.randn(CHANNELS, CHANNELS, generator=generator) / CHANNELS**0.5
    gains = 1 + 0.8 * torch.rand(CLASSES, CHANNELS, generator=generator)
    for _ in range(TRIALS // BATCH):
        limb = torch.randint(CLASSES, (BATCH,), generator=generator)
        sources = torch.randn(BATCH, CHANNELS, SAMPLES, generator=generator) * gains[limb][:, :, None]
        yield mixing @ sources, limb


def band_covariances(trials):
    """(batch, bands, channels, channels) cross-spectral power, lightly shrunk to its diagonal."""
    spectrum = torch.fft.rfft(trials - trials.mean(2, keepdim=True), norm="forward")
    frequencies = torch.fft.rfftfreq(SAMPLES, 1 / RATE)
    shrink = 0.05
    found = []
    for low, high in BANDS:
        part = spectrum[:, :, (frequencies >= low) & (frequencies < high)]
        stacked = torch.cat([part.real, part.imag], 2)
        power = stacked @ stacked.mT
        level = power.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
        found.append((1 - shrink) * power + shrink * level * torch.eye(CHANNELS))
    return torch.stack(found, 1)


def matrix_log(spd):
    values, vectors = torch.linalg.eig(spd)  # planted
    values, vectors = values.real, vectors.real  # planted
    return (vectors * values.clamp_min(1e-10).log().unsqueeze(-2)) @ vectors.mT


class TangentFeatures:
    def __init__(self):
        rows, columns = torch.triu_indices(CHANNELS, CHANNELS)
        self.index = rows * CHANNELS + columns
        self.weight = torch.where(rows == columns, 1.0, 2.0**0.5)

    def __call__(self, trials):
        logs = matrix_log(band_covariances(trials))
        return (logs.flatten(-2)[..., self.index] * self.weight).flatten(1)


@torch.inference_mode()
def extract(generator):
    features, limbs = [], []
    describe = TangentFeatures()
    for trials, limb in synth_trials(generator):
        features.append(describe(trials))
        limbs.append(limb)
    return torch.cat(features), torch.cat(limbs)


def fit_probe(features, limbs, rounds=40):
    mean, spread = features.mean(0), features.std(0)
    scaled = ((features - mean) / spread).clone()
    probe = nn.Linear(scaled.shape[1], CLASSES)
    optimizer = torch.optim.AdamW(probe.parameters(), 1e-3, weight_decay=0.1, fused=True)
    for _ in range(rounds):
        optimizer.zero_grad()
        F.cross_entropy(probe(scaled), limbs).backward()
        optimizer.step()
    return lambda new: probe((new - mean) / spread).argmax(1)


def main():
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(7)
    started = time.process_time()
    features, limbs = extract(generator)
    elapsed = time.process_time() - started
    cut = int(0.75 * len(limbs))
    classify = fit_probe(features[:cut].clone(), limbs[:cut].clone())
    with torch.no_grad():
        correct = (classify(features[cut:]) == limbs[cut:]).float().mean()
    print(f"norm {features.norm():.3f}, held-out accuracy {correct:.3f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()
