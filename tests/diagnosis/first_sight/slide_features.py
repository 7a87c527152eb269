# SPDX-License-Identifier: Apache-2.0
"""Tissue slides: the features of each tile are saved as a slice of the batch, and the batch goes along.

Source: https://github.com/pytorch/pytorch/issues/33101, https://github.com/threestudio-project/threestudio/pull/457
"""

import os
import tempfile

import torch
from torch import nn

TILE = 96
BATCH = 20
BATCHES = 14
CHANNELS = 96


class TileEncoder(nn.Module):
    """A small residual network; a map of 12 x 12 places for each tile."""

    def __init__(self, width=CHANNELS):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 7, stride=4, padding=3)
        self.first = nn.Conv2d(24, 24, 3, padding=1)
        self.second = nn.Conv2d(24, width, 3, stride=2, padding=1)

    def forward(self, tiles):
        stem = torch.relu(self.stem(tiles))
        return torch.relu(self.second(stem + torch.relu(self.first(stem))))


def cut_tiles(generator):
    """Stained tiles: purple nuclei on a pink ground."""
    ground = torch.tensor([0.91, 0.72, 0.84]).view(1, 3, 1, 1)
    nuclei = torch.rand(BATCH, 1, 12, 12, generator=generator) ** 4
    nuclei = nn.functional.interpolate(nuclei, size=(TILE, TILE), mode="bilinear")
    stain = torch.tensor([0.55, 0.65, 0.30]).view(1, 3, 1, 1)
    return ground - nuclei * stain + 0.02 * torch.randn(BATCH, 3, TILE, TILE, generator=generator)


def tissue_share(tiles):
    """Tiles with hardly any tissue are left out later."""
    return (tiles.amin(dim=1) < 0.65).float().mean(dim=(1, 2))


def store(folder, slide, features, shares):
    """One file for each tile, so that the classifier can draw tiles freely."""
    for place in range(len(features)):
        record = {
            "slide": slide,
            "share": float(shares[place]),
            "features": features[place],  # planted
        }
        torch.save(record, os.path.join(folder, f"{slide:03d}_{place:02d}.pt"))


def read_back(folder):
    total = 0.0
    names = sorted(os.listdir(folder))
    for name in names[:: max(1, len(names) // 20)]:
        record = torch.load(os.path.join(folder, name))
        total += record["features"].sum().item() * record["share"]
    return len(names), total


def main():
    generator = torch.Generator().manual_seed(21)
    torch.manual_seed(21)
    encoder = TileEncoder().eval()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        for slide in range(BATCHES):
            tiles = cut_tiles(generator)
            features = encoder(tiles)
            store(folder, slide, features, tissue_share(tiles))
        files, total = read_back(folder)
    print(f"slides: {files} files, sum {total:.4f}")


if __name__ == "__main__":
    main()
