# SPDX-License-Identifier: Apache-2.0
"""Birds by species: photographs of a camera are decoded at full size, for pictures of 96 by 96.

Source: merged roboflow/rf-detr pull request 1389 ("draft-decode oversized JPEGs"), merged thumbor pull request 989.
"""

import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, SPECIES = 96, 8


def save_photos(folder, count=24):
    generator = np.random.default_rng(0)
    for number in range(count):
        coarse = Image.fromarray(generator.integers(0, 255, (30, 40, 3), dtype=np.uint8))
        coarse.resize((1600, 1200), Image.Resampling.BICUBIC).save(folder / f"{number:04}_{number % SPECIES}.jpg")


class Birds(Dataset):
    def __init__(self, folder, repeats):
        self.paths = sorted(folder.glob("*.jpg")) * repeats

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        with Image.open(path) as file:
            photo = file.convert("RGB")  # planted
        photo = photo.resize((SIDE, SIDE), Image.Resampling.BILINEAR)  # planted
        pixels = torch.from_numpy(np.array(photo)).permute(2, 0, 1).float().div(255)
        return pixels, int(path.stem[-1])


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return (x + self.body(x)).relu()


class Classifier(nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, channels, 7, stride=4, padding=3), nn.ReLU())
        self.blocks = nn.Sequential(Residual(channels), Residual(channels))
        self.head = nn.Linear(channels, SPECIES)

    def forward(self, pictures):
        return self.head(self.blocks(self.stem(pictures)).mean((2, 3)))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    save_photos(folder)
    torch.manual_seed(0)
    loader = DataLoader(Birds(folder, repeats=6), batch_size=8, shuffle=True, drop_last=True)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for pictures, species in loader:
        loss = nn.functional.cross_entropy(model(pictures), species)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
