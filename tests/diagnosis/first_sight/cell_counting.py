# SPDX-License-Identifier: Apache-2.0
"""Density-map regression for counting cells in microscopy crops."""

import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def write_plate(path, crops=420, size=64):
    rng = np.random.default_rng(11)
    yy, xx = np.mgrid[:size, :size]
    images = np.empty((crops, size, size), np.uint8)
    density = np.zeros((crops, size, size), np.float16)
    for n in range(crops):
        canvas = rng.normal(20, 4, (size, size))
        for cy, cx in rng.integers(4, size - 4, (rng.integers(3, 15), 2)):
            blob = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 8.0)
            canvas += 150 * blob
            density[n] += (blob / blob.sum()).astype(np.float16)
        images[n] = canvas.clip(0, 255)
    np.savez(path, image=images, density=density)


class PlateCrops(Dataset):
    """Random flips on the fly, so samples are made one by one in the worker."""

    def __init__(self, path):
        self.plate = np.load(path)  # planted
        self.count = len(self.plate["image"])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = self.plate["image"][index]  # planted
        target = self.plate["density"][index]  # planted
        if np.random.rand() < 0.5:
            image, target = image[:, ::-1], target[:, ::-1]
        if np.random.rand() < 0.5:
            image, target = image[::-1], target[::-1]
        image = image.astype(np.float32) / 255.0
        return image[None], target.astype(np.float32)[None]


class DensityNet(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, ch, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        self.mid = nn.Sequential(
            nn.Conv2d(ch, 2 * ch, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * ch, 2 * ch, 3, padding=1),
            nn.ReLU(),
        )
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * ch, ch, 2, stride=2), nn.ReLU())
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x):
        return self.out(self.up(self.mid(self.down(x))))


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plate.npz")
        write_plate(path)
        loader = DataLoader(
            PlateCrops(path),
            batch_size=16,
            shuffle=True,
            num_workers=1,
            persistent_workers=True,
            worker_init_fn=seed_worker,
        )
        model = DensityNet()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
        start = time.perf_counter()
        for epoch in range(4):
            error = torch.zeros(())
            for images, density in loader:
                predicted = model(images)
                loss = nn.functional.mse_loss(predicted, 100.0 * density)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                counted = predicted.detach().sum((1, 2, 3)) / 100.0
                error += (counted - density.sum((1, 2, 3))).abs().sum()
            print(f"epoch {epoch}: count error {error.item() / len(loader.dataset):.3f}")
        del loader
        print(f"trained in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
