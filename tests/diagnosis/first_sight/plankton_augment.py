# SPDX-License-Identifier: Apache-2.0
"""Marine biology: classification of plankton photographs with lighting augmentation on the host.

The flow camera stores 8-bit images. A chain of small numpy transforms imitates the optics (exposure,
contrast curve, vignette, slight defocus), then a compact network classifies the species.
"""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES, SIDE, IMAGES = 6, 128, 512
BATCH, EPOCHS = 32, 5

MEAN = np.array([0.35, 0.37, 0.40], dtype=np.float32)[:, None, None]
STD = np.array([0.20, 0.21, 0.22], dtype=np.float32)[:, None, None]


def photograph(rng, species):
    """A blurred body with `species + 2` arms on a bluish background."""
    axis = np.linspace(-1, 1, SIDE, dtype=np.float32)
    x, y = np.meshgrid(axis, axis)
    angle = np.arctan2(y, x) + rng.uniform(0, 6.28)
    radius = np.hypot(x, y) / (0.5 + 0.15 * np.cos((species + 2) * angle))
    body = 1 / (1 + np.exp(12 * (radius - 1)))
    tint = np.array([0.3, 0.4, 0.6])[:, None, None] + rng.normal(0, 0.05, (3, 1, 1))
    image = tint * (1 - body) + (0.3 + 0.1 * species + rng.normal(0, 0.03, (3, 1, 1))) * body
    return (255 * image.clip(0, 1)).astype(np.uint8)


class Exposure:
    def __call__(self, image, rng):
        image = image / 255.0  # planted
        return image * rng.uniform(0.8, 1.2)


class ContrastCurve:
    """A gamma curve followed by a smooth shoulder."""

    def __call__(self, image, rng):
        curve = np.power(np.clip(image, 1e-3, 1.0), rng.uniform(0.7, 1.4))
        return np.tanh(1.5 * curve) / np.tanh(1.5)


class Vignette:
    def __init__(self, side):
        axis = np.linspace(-1, 1, side, dtype=np.float32)
        self.falloff = axis[:, None] ** 2 + axis**2

    def __call__(self, image, rng):
        return image * np.exp(-rng.uniform(0.0, 0.4) * self.falloff)


class Defocus:
    """Separable three-tap blur of random strength."""

    def __call__(self, image, rng):
        side = rng.uniform(0.0, 0.3)
        for axis in (1, 2):
            image = (1 - 2 * side) * image + side * (np.roll(image, 1, axis) + np.roll(image, -1, axis))
        return image


class Normalise:
    def __call__(self, image, rng):
        return (image - MEAN) / STD


class PlanktonSet(Dataset):
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.label = self.rng.integers(0, SPECIES, IMAGES)
        self.image = [photograph(self.rng, species) for species in self.label]
        self.chain = [Exposure(), ContrastCurve(), Vignette(SIDE), Defocus(), Normalise()]

    def __len__(self):
        return IMAGES

    def __getitem__(self, index):
        image = self.image[index]
        for transform in self.chain:
            image = transform(image, self.rng)
        return torch.from_numpy(image.astype(np.float32)), int(self.label[index])


def network(width=12):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, 4, 2),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(2 * width, 4 * width, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * width, SPECIES),
    )


def main():
    torch.manual_seed(4)
    loader = DataLoader(PlanktonSet(seed=6), BATCH, shuffle=True, drop_last=True)
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    for epoch in range(EPOCHS):
        seen = right = 0
        for image, species in loader:
            logits = net(image)
            loss = nn.functional.cross_entropy(logits, species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(species)
            right += int((logits.argmax(1) == species).sum())
    print(f"loss {loss.item():.1f} accuracy {right / seen:.1f}")


if __name__ == "__main__":
    main()
