# SPDX-License-Identifier: Apache-2.0
"""Vision: classification of leaves by the form of their edge, with random crops and flips made per picture in the
dataset, as every visit should look different. Prints loss and accuracy."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

FORMS, SIDE, CROP, BATCH = 6, 72, 64, 24


class Leaves(Dataset):
    """Closed curves with as many lobes as the number of the form plus two."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.forms = rng.integers(FORMS, size=count)
        axis = np.linspace(-1.2, 1.2, SIDE, dtype=np.float32)
        x, y = np.meshgrid(axis, axis)
        radius, angle = np.hypot(x, y), np.arctan2(y, x)
        turn = rng.uniform(0, 6.28, count).astype(np.float32)
        edge = 0.7 + 0.2 * np.cos((self.forms[:, None, None] + 2) * angle + turn[:, None, None])
        leaf = 1 / (1 + np.exp((radius - edge) * 20))
        green = np.stack([0.3 * leaf, 0.8 * leaf, 0.2 * leaf], 1)
        self.pictures = (green * 255).astype(np.uint8)
        self.rng = np.random.default_rng(seed + 1)

    def __len__(self):
        return len(self.forms)

    def __getitem__(self, number):
        top, left = self.rng.integers(SIDE - CROP + 1, size=2)
        picture = self.pictures[number, :, top : top + CROP, left : left + CROP]
        if self.rng.random() < 0.5:
            picture = picture[:, :, ::-1]
        brightness = np.float32(self.rng.uniform(0.8, 1.2) / 255)
        return torch.from_numpy(picture * brightness), int(self.forms[number])


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.Conv2d(64, 96, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(96), nn.ReLU(inplace=True),
            nn.Conv2d(96, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.head = nn.Linear(128, FORMS)

    def forward(self, pictures):
        return self.head(self.features(pictures).amax((2, 3)))


def main():
    torch.manual_seed(240)
    order = torch.Generator().manual_seed(241)
    loader = DataLoader(Leaves(30 * BATCH, seed=242), BATCH, shuffle=True, generator=order)
    model = LeafNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses, hits = [], []
    for step, (pictures, forms) in enumerate(loader):
        logits = model(pictures.contiguous(memory_format=torch.channels_last))
        loss = F.cross_entropy(logits, forms)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        hits.append((logits.argmax(1) == forms).float().mean().item())
    print(f"loss {sum(losses[-8:]) / 8:.3f}, accuracy {sum(hits[-8:]) / 8:.2f}")


if __name__ == "__main__":
    main()
