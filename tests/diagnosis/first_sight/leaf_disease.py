# SPDX-License-Identifier: Apache-2.0
"""Leaf-spot classifier: on-the-fly rendering and augmentation, gradient accumulation."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, CLASSES = 64, 4
AXIS = np.linspace(-1, 1, SIZE, dtype=np.float32)


class LeafImages(Dataset):
    """Renders a leaf with class-dependent spots; training items get flips and jitter."""

    def __init__(self, n, seed, train):
        self.n, self.seed, self.train = n, seed, train

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        rng = np.random.default_rng((self.seed, index))
        label = int(rng.integers(CLASSES))
        leaf = (AXIS[None] ** 2 + 2 * AXIS[:, None] ** 2 < 0.9).astype(np.float32)
        image = np.stack([0.2 * leaf, 0.6 * leaf, 0.15 * leaf])
        radius = np.float32(0.06 + 0.05 * (label % 2))
        for cx, cy in rng.uniform(-0.5, 0.5, (4 + 4 * (label // 2), 2)).astype(np.float32):
            spot = np.exp(-(((AXIS[None] - cx) ** 2 + (AXIS[:, None] - cy) ** 2) / radius**2))
            image[0] += 0.5 * spot
            image[1] -= 0.3 * spot
        if self.train:
            if rng.random() < 0.5:
                image = image[:, :, ::-1]
            image = image * rng.uniform(0.8, 1.2, (3, 1, 1)).astype(np.float32)
        image = image + rng.standard_normal(image.shape, dtype=np.float32) * 0.05
        return torch.from_numpy(np.ascontiguousarray(image)), label


class SeparableBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.depth = nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False)
        self.point = nn.Conv2d(cin, cout, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(cin), nn.BatchNorm2d(cout)

    def forward(self, x):
        x = F.relu(self.norm1(self.depth(x)), inplace=True)
        return F.relu(self.norm2(self.point(x)), inplace=True)


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 2, 1)
        self.blocks = nn.Sequential(
            SeparableBlock(32, 64, 1),
            SeparableBlock(64, 128, 2),
            SeparableBlock(128, 128, 1),
            SeparableBlock(128, 192, 2),
        )
        self.head = nn.Linear(192, CLASSES)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


def train_epoch(model, loader, optimizer, schedule, accumulate):
    model.train()
    total = torch.zeros(())
    for i, (images, labels) in enumerate(loader, 1):
        images = images.to(memory_format=torch.channels_last)
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.05)
        (loss / accumulate).backward()
        total += loss.detach()
        if i % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
    return (total / len(loader)).item()


@torch.inference_mode()
def accuracy(model, loader):
    model.eval()
    hits = torch.zeros((), dtype=torch.long)
    for images, labels in loader:
        images = images.to(memory_format=torch.channels_last)
        hits += (model(images).argmax(dim=1) == labels).sum()
    return hits.item() / len(loader.dataset)


def main(epochs=4, batch=32, accumulate=2):
    torch.manual_seed(0)
    options = dict(num_workers=1, persistent_workers=True, prefetch_factor=4)
    train = DataLoader(LeafImages(896, 1, True), batch, shuffle=True, drop_last=True, **options)
    valid = DataLoader(LeafImages(192, 2, False), 64, **options)
    model = LeafNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.02)
    updates = epochs * (len(train) // accumulate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=updates)
    start = time.perf_counter()
    for epoch in range(epochs):
        loss = train_epoch(model, train, optimizer, schedule, accumulate)
        print(f"epoch {epoch}: loss {loss:.4f}  accuracy {accuracy(model, valid):.3f}")
    print(f"loop {time.perf_counter() - start:.2f}s")


if __name__ == "__main__":
    main()
