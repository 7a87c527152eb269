# SPDX-License-Identifier: Apache-2.0
"""Astronomy data pipeline: cut-outs of galaxies lie in one compressed archive per sky field; a convolutional
regressor learns the ellipticity of a galaxy from its cut-out. Prints the error on the last batches."""

import pathlib
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIELDS, PER_FIELD, SIDE = 24, 64, 40


def write_field(path, rng):
    axis = np.linspace(-2, 2, SIDE)
    x, y = np.meshgrid(axis, axis)
    ratio = rng.uniform(0.3, 1.0, PER_FIELD)
    angle = rng.uniform(0, np.pi, PER_FIELD)
    c, s = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    major, minor = c * x + s * y, c * y - s * x
    light = np.exp(-(major**2 + (minor / ratio[:, None, None]) ** 2) * 2)
    counts = rng.poisson(1200 * light + 40).astype(np.uint16)
    np.savez_compressed(path, stamps=counts, ratio=ratio.astype(np.float32), sky=np.float32(40.0))


class SkyFields(Dataset):
    """Opens the archive of every field; item number = field * PER_FIELD + place in the field."""

    def __init__(self, folder):
        self.paths = sorted(pathlib.Path(folder).glob("field_*.npz"))
        self.fields = [np.load(path) for path in self.paths]  # planted

    def __len__(self):
        return len(self.fields) * PER_FIELD

    def __getitem__(self, number):
        field, place = divmod(number, PER_FIELD)
        archive = self.fields[field]
        stamp = archive["stamps"][place].astype(np.float32)
        stamp = np.arcsinh((stamp - archive["sky"]) / 50)
        return torch.from_numpy(stamp)[None], torch.tensor(archive["ratio"][place])


def regressor():
    def stage(inside, outside):
        return [
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, stride=2, padding=1),
            nn.ReLU(),
        ]

    return nn.Sequential(
        *stage(1, 16),
        *stage(16, 32),
        *stage(32, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 1),
        nn.Flatten(0),
    )


def main():
    rng = np.random.default_rng(8)
    torch.manual_seed(8)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(FIELDS):
            write_field(pathlib.Path(folder) / f"field_{number:03d}.npz", rng)
        order = torch.Generator().manual_seed(4)
        loader = DataLoader(SkyFields(folder), batch_size=24, shuffle=True, drop_last=True, generator=order)
        model = regressor()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        errors = []
        for step, (stamps, ratio) in enumerate(loader):
            loss = nn.functional.mse_loss(model(stamps), ratio)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            errors.append(loss.item())
        print(f"mean squared error of the axis ratio {np.mean(errors[-20:]):.4f} after {len(errors)} batches")


if __name__ == "__main__":
    main()
