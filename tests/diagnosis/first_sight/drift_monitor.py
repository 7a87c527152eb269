# SPDX-License-Identifier: Apache-2.0
"""Nightly drift check of a deployed encoder: two-sample MMD test of embeddings, window by window."""

import time

import torch
from torch import nn

N_CHANNELS, LENGTH, WIDTH = 6, 96, 48
N_REFERENCE, N_WINDOW, N_WINDOWS, N_PERMUTATIONS = 400, 300, 12, 500


class Encoder(nn.Module):
    """Machine-state encoder of the vibration classifier (weights as deployed)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(N_CHANNELS, 32, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(32, 64, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(64, WIDTH),
        )

    def forward(self, signal):
        return self.layers(signal)


class SensorArchive:
    """Synthetic vibration records; from a given window on, one bearing wears out."""

    def __init__(self, seed, wear_from):
        self.generator = torch.Generator().manual_seed(seed)
        self.wear_from = wear_from

    def records(self, n, wear=0.0):
        t = torch.linspace(0, 1, LENGTH)
        freq = 4 + 8 * torch.rand(n, N_CHANNELS, 1, generator=self.generator)
        phase = 6.28 * torch.rand(n, N_CHANNELS, 1, generator=self.generator)
        tone = torch.sin(6.28 * freq * t + phase)
        rattle = torch.randn(n, N_CHANNELS, LENGTH, generator=self.generator)
        return tone + (0.4 + wear) * rattle

    def windows(self):
        for index in range(N_WINDOWS):
            wear = 0.05 * max(0, index - self.wear_from + 1)
            yield index, self.records(N_WINDOW, wear)


def gaussian_kernel(a, b, bandwidth):
    distance = (a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T).clamp_(min=0.0)
    return distance.mul_(-0.5 / bandwidth**2).exp_()


def mmd(a, b, bandwidth):
    """Squared maximum mean discrepancy (V-statistic)."""
    within = gaussian_kernel(a, a, bandwidth).mean() + gaussian_kernel(b, b, bandwidth).mean()
    return within - 2 * gaussian_kernel(a, b, bandwidth).mean()


def permutation_test(reference, window, bandwidth, generator):
    """Returns the statistic and its p-value under random relabelling of the pooled samples."""
    statistic = mmd(reference, window, bandwidth)
    pooled, n = torch.cat([reference, window]), len(reference)
    null = []
    for _ in range(N_PERMUTATIONS):
        order = torch.randperm(len(pooled), generator=generator)
        null.append(mmd(pooled[order[:n]], pooled[order[n:]], bandwidth))  # planted
    exceed = (torch.stack(null) >= statistic).sum()
    return statistic.item(), (exceed.item() + 1) / (N_PERMUTATIONS + 1)


def holm(p_values, level=0.05):
    """Indices of rejected hypotheses (Holm's step-down procedure)."""
    rejected = []
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected.append(index)
    return sorted(rejected)


@torch.inference_mode()
def main():
    torch.manual_seed(19)
    encoder = Encoder().eval()
    archive = SensorArchive(seed=5, wear_from=7)
    generator = torch.Generator().manual_seed(1)
    reference = encoder(archive.records(N_REFERENCE))
    bandwidth = torch.pdist(reference).median()
    p_values = []
    started = time.perf_counter()
    for index, signals in archive.windows():
        statistic, p_value = permutation_test(reference, encoder(signals), bandwidth, generator)
        p_values.append(p_value)
        print(f"window {index:2d}  mmd {statistic:.5f}  p {p_value:.3f}")
    elapsed = time.perf_counter() - started
    print("below 0.05:", [i for i, p in enumerate(p_values) if p < 0.05], " Holm:", holm(p_values))
    print(f"{N_WINDOWS} windows in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
