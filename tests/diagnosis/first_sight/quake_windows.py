# SPDX-License-Identifier: Apache-2.0
"""Earthquake picking: each window is looked up in an open archive, which unpacks the whole array for it.

Source: https://github.com/numpy/numpy/pull/23661, https://github.com/criteo/autofaiss/pull/90
"""

import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOWS = 192
SAMPLES = 512
BATCH = 16
EPOCHS = 2


def write_archive(path):
    """Three-component windows as 16-bit counts, with the sample at which the P wave comes in."""
    random = np.random.default_rng(11)
    onset = random.integers(80, 430, WINDOWS)
    time = np.arange(SAMPLES)
    waves = random.normal(0.0, 30.0, (WINDOWS, 3, SAMPLES))
    for row, start in enumerate(onset):
        late = np.clip(time - start, 0, None)
        shake = np.sin(late * random.uniform(0.2, 0.7)) * np.exp(-late / 90.0) * (late > 0)
        waves[row] += shake * random.uniform(100.0, 800.0, (3, 1))
    np.savez_compressed(path, waves=waves.astype(np.int16), onset=onset)


class QuakeWindows(Dataset):
    def __init__(self, path):
        self.archive = np.load(path)  # planted
        self.count = len(self.archive["onset"])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        wave = self.archive["waves"][index].astype(np.float32)  # planted
        wave -= wave.mean(axis=1, keepdims=True)
        wave /= wave.std() + 1e-6
        return torch.from_numpy(wave), int(self.archive["onset"][index])


class Picker(nn.Module):
    """A score for each sample being the first of the P wave."""

    def __init__(self, width=24):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv1d(3, width, 11, padding=5),
            nn.ReLU(),
            nn.Conv1d(width, width, 11, stride=2, padding=5),
            nn.ReLU(),
            nn.Conv1d(width, width, 11, padding=5),
            nn.ReLU(),
        )
        self.up = nn.ConvTranspose1d(width, 1, 4, stride=2, padding=1)

    def forward(self, wave):
        return self.up(self.down(wave)).squeeze(1)


def pick_loss(scores, onset):
    """Cross entropy against a narrow bell around the picked sample."""
    time = torch.arange(SAMPLES)
    bell = torch.exp(-((time - onset[:, None]) ** 2) / 50.0)
    bell = bell / bell.sum(dim=1, keepdim=True)
    return -(bell * scores.log_softmax(dim=1)).sum(dim=1).mean()


def batches(loader):
    for _ in range(EPOCHS):
        yield from loader


def main():
    torch.manual_seed(11)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "windows.npz")
        write_archive(path)
        windows = QuakeWindows(path)
        order = torch.Generator().manual_seed(2)
        loader = DataLoader(windows, batch_size=BATCH, shuffle=True, generator=order)
        model = Picker()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for wave, onset in batches(loader):
            loss = pick_loss(model(wave), onset)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"quakes: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
