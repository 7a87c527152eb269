# SPDX-License-Identifier: Apache-2.0
"""Segments cells: a data set searches two directories for the files of each sample.

Source: milesial/Pytorch-UNet issue 449 ("treat glob as an expensive operation"), whose data set does it in __getitem__.
"""

import pathlib
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES, SIDE = 1600, 64


def write_samples(folder):
    generator = np.random.default_rng(0)
    for kind in ("images", "masks"):
        (folder / kind).mkdir()
    for number in range(SAMPLES):
        image = generator.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
        np.save(folder / "images" / f"cell{number:05}.npy", image)
        np.save(folder / "masks" / f"cell{number:05}.npy", image > 128)


class Cells(Dataset):
    def __init__(self, folder):
        self.images, self.masks = folder / "images", folder / "masks"
        self.names = [file.stem for file in self.images.iterdir()]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        name = self.names[index]
        image_files = list(self.images.glob(name + ".*"))  # planted
        mask_files = list(self.masks.glob(name + ".*"))  # planted
        if len(image_files) != 1 or len(mask_files) != 1:
            raise ValueError(f"not one image and one mask of {name}")
        image = torch.from_numpy(np.load(image_files[0])).float().div(255)
        return image[None], torch.from_numpy(np.load(mask_files[0])).long()


def double(entering, leaving):
    layers = []
    for channels in (entering, leaving):
        layers += [nn.Conv2d(channels, leaving, 3, padding=1, bias=False), nn.BatchNorm2d(leaving), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enter, self.deep = double(1, width), double(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.leave = nn.Sequential(double(2 * width, width), nn.Conv2d(width, 2, 1))

    def forward(self, images):
        fine = self.enter(images)
        coarse = self.deep(nn.functional.max_pool2d(fine, 2))
        return self.leave(torch.cat([fine, self.up(coarse)], 1))


def train(folder, steps=40):
    loader = DataLoader(Cells(folder), batch_size=8, shuffle=True)
    model = UNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
    for step, (images, masks) in enumerate(loader):
        if step == steps:
            break
        loss = nn.functional.cross_entropy(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as name:
    write_samples(pathlib.Path(name))
    train(pathlib.Path(name))
