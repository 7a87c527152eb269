# SPDX-License-Identifier: Apache-2.0
"""Data pipeline: photometric redshift regression from image patches of a sky survey kept in compressed tiles.

The survey writes one compressed archive per tile with the patches and the redshifts of its galaxies. The
dataset maps an index to (tile, row), and a convolutional network regresses the redshift.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TILES, PER_TILE, BANDS, SIDE = 4, 64, 5, 24
BATCH, EPOCHS = 32, 2


def write_survey(folder, seed=0):
    """Galaxies are exponential discs whose colour and size depend on their redshift."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    paths = []
    for tile in range(TILES):
        z = rng.uniform(0.05, 1.0, PER_TILE).astype(np.float32)
        stretch = rng.uniform(0.5, 1.0, PER_TILE)
        radius = np.sqrt(x**2 + (y[None] / stretch[:, None, None]) ** 2)
        disc = np.exp(-radius / (1.5 + 2.5 / (1 + 4 * z))[:, None, None])
        colour = np.exp(-((np.arange(BANDS) / 4 - z[:, None]) ** 2) * 4)
        patch = 40 * disc[:, None] * colour[:, :, None, None]
        patch = np.round(patch + rng.normal(0, 1.0, patch.shape), 1).astype(np.float32)
        path = Path(folder) / f"tile{tile:02d}.npz"
        np.savez_compressed(path, patch=patch, redshift=z)
        paths.append(path)
    return paths


class SurveyPatches(Dataset):
    """All galaxies of the survey with a random flip each."""

    def __init__(self, paths, seed):
        self.tiles = [np.load(path) for path in paths]  # planted
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return TILES * PER_TILE

    def __getitem__(self, index):
        tile = self.tiles[index // PER_TILE]
        row = index % PER_TILE
        patch = tile["patch"][row]
        if self.rng.random() < 0.5:
            patch = patch[:, :, ::-1]
        if self.rng.random() < 0.5:
            patch = patch[:, ::-1]
        scaled = np.arcsinh(np.ascontiguousarray(patch))
        return torch.from_numpy(scaled), torch.tensor(tile["redshift"][row])


class RedshiftNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(BANDS, width, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.GELU(),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(2 * width * 36, 64), nn.GELU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.head(self.features(x)).squeeze(1)


def fit(paths):
    loader = DataLoader(
        SurveyPatches(paths, seed=3), batch_size=BATCH, shuffle=True, generator=torch.Generator().manual_seed(1)
    )
    net = RedshiftNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    errors = []
    for epoch in range(EPOCHS):
        for patch, redshift in loader:
            estimate = net(patch.contiguous(memory_format=torch.channels_last))
            loss = nn.functional.huber_loss(estimate, redshift)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            errors.append((estimate.detach() - redshift).abs().mean().item())
    return errors


if __name__ == "__main__":
    torch.manual_seed(2)
    with tempfile.TemporaryDirectory() as folder:
        errors = fit(write_survey(folder))
    print(f"mean error first {errors[0]:.4f} last {errors[-1]:.4f}")
