# SPDX-License-Identifier: Apache-2.0
"""Segmentation of microscopy images with a small U-Net."""

import torch
import torch.nn.functional as F
from torch import nn


def stage(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down1, self.down2 = stage(1, width), stage(width, 2 * width)
        self.bottom = stage(2 * width, 4 * width)
        self.up2, self.up1 = stage(6 * width, 2 * width), stage(3 * width, width)
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, image):
        fine = self.down1(image)
        middle = self.down2(F.max_pool2d(fine, 2))
        deep = self.bottom(F.max_pool2d(middle, 2))
        middle = self.up2(torch.cat([F.interpolate(deep, scale_factor=2.0), middle], dim=1))
        fine = self.up1(torch.cat([F.interpolate(middle, scale_factor=2.0), fine], dim=1))
        return self.mask(fine)


def micrographs(count, size, generator):
    axis = torch.arange(size).float()
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    centers = torch.rand(count, 6, 2, 1, 1, generator=generator) * size
    radius = 3 + 5 * torch.rand(count, 6, 1, 1, generator=generator)
    distance = torch.hypot(yy - centers[:, :, 0], xx - centers[:, :, 1])
    masks = (distance < radius).any(dim=1, keepdim=True).float()
    images = 0.6 * masks + 0.2 * torch.randn(count, 1, size, size, generator=generator)
    return images, masks


def dice_loss(logits, masks):
    probability = torch.sigmoid(logits)
    overlap = (probability * masks).sum(dim=(1, 2, 3))
    total = probability.sum(dim=(1, 2, 3)) + masks.sum(dim=(1, 2, 3))
    return 1 - ((2 * overlap + 1) / (total + 1)).mean()


class SegmentationTrainer:
    def __init__(self, model, mixed_precision):
        self.model = model
        self.mixed_precision = mixed_precision
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)

    def fit(self, images, masks, steps, batch, generator):
        self.model.train()
        for step in range(1, steps + 1):
            rows = torch.randint(0, len(images), (batch,), generator=generator)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.mixed_precision):
                logits = self.model(images[rows])
            logits = logits.float()
            loss = F.binary_cross_entropy_with_logits(logits, masks[rows]) + dice_loss(logits, masks[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 4 == 0:
                print(f"step {step}: loss {loss.item():.4f}")


def main():
    torch.manual_seed(50)
    generator = torch.Generator().manual_seed(51)
    images, masks = micrographs(128, 48, generator)
    trainer = SegmentationTrainer(UNet(), mixed_precision=True)  # planted
    trainer.fit(images, masks, steps=12, batch=8, generator=generator)


if __name__ == "__main__":
    main()
