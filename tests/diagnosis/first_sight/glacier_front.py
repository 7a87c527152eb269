# SPDX-License-Identifier: Apache-2.0
"""Segmentation of glacier, sea and rock in radar patches with a small encoder-decoder."""

import time

import torch
import torch.nn.functional as F
from torch import nn

SIZE, CLASSES, PATCHES, BATCH, EPOCHS = 64, 3, 480, 24, 4


def synth_patches(count, generator):
    """A meandering glacier front over the sea, with rock at one flank and speckle."""
    y = torch.linspace(0, 1, SIZE).view(1, SIZE, 1)
    x = torch.linspace(0, 1, SIZE).view(1, 1, SIZE)
    u = torch.rand(count, 6, 1, 1, generator=generator)
    front = 0.3 + 0.4 * u[:, 0] + 0.08 * torch.sin(12 * x + 6 * u[:, 1]) + 0.03 * torch.sin(31 * x + 9 * u[:, 2])
    label = (y > front).long()
    label[(x + 0.2 * y < 0.3 * u[:, 3]).expand_as(label)] = 2
    level = torch.tensor([0.35, 0.15, 0.6])[label]
    speckle = -torch.rand(count, 2, SIZE, SIZE, generator=generator).clamp_min(1e-4).log()
    radar = level[:, None] * (0.4 + 0.6 * speckle)
    return radar.log1p().to(memory_format=torch.channels_last), label


class ConvUnit(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class FrontNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.enter = ConvUnit(2, width)
        self.down = nn.Sequential(nn.MaxPool2d(2), ConvUnit(width, 2 * width))
        self.deep = nn.Sequential(nn.MaxPool2d(2), ConvUnit(2 * width, 4 * width), ConvUnit(4 * width, 2 * width))
        self.join = ConvUnit(4 * width, width)
        self.leave = nn.Conv2d(2 * width, CLASSES, 1)

    def forward(self, radar):
        fine = self.enter(radar)
        middle = self.down(fine)
        coarse = F.interpolate(self.deep(middle), scale_factor=2.0)
        joined = self.join(torch.cat([middle, coarse], 1))
        return self.leave(torch.cat([fine, F.interpolate(joined, scale_factor=2.0)], 1))


def augment(radar, label, generator):
    """Mirror the whole batch or none of it, and shift it cyclically along the coast."""
    flip, shift = torch.randint(0, 2, (), generator=generator), torch.randint(0, SIZE, (), generator=generator)
    if flip:
        radar, label = radar.flip(3), label.flip(2)
    return radar.roll(int(shift), 3), label.roll(int(shift), 2)


class ClassCounts:
    """Confusion counts for the intersection over union of every class."""

    def __init__(self):
        self.table = torch.zeros(CLASSES * CLASSES, dtype=torch.long)

    def add(self, predicted, label):
        self.table += torch.bincount((label * CLASSES + predicted).flatten(), minlength=CLASSES**2)

    def overlap(self):
        table = self.table.view(CLASSES, CLASSES)
        both = table.diagonal()
        return both / (table.sum(0) + table.sum(1) - both).clamp_min(1)


@torch.inference_mode()
def evaluate(model, radar, label):
    model.eval()
    counts = ClassCounts()
    for rays, classes in zip(radar.split(48), label.split(48)):
        counts.add(model(rays).argmax(1), classes)
    model.train()
    return counts.overlap()


def main():
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(21)
    radar, label = synth_patches(PATCHES, generator)
    held_radar, held_label = synth_patches(96, generator)
    model = FrontNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=EPOCHS * PATCHES // BATCH)
    started = time.process_time()
    for epoch in range(EPOCHS):
        total = torch.zeros(())
        for pick in torch.randperm(PATCHES, generator=generator).split(BATCH):
            patch, truth = augment(radar[pick], label[pick], generator)
            loss = F.cross_entropy(model(patch), truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        overlap = evaluate(model, held_radar, held_label)
        print(f"epoch {epoch}: loss {total * BATCH / PATCHES:.4f}, overlap {overlap.tolist()}")
    print(f"loop {time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()
