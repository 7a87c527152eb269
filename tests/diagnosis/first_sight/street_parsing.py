# SPDX-License-Identifier: Apache-2.0
"""Evaluate a light street-scene parser on a synthetic test drive (mean IoU over the 19 scored classes)."""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SCORED = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
NUM_CLASSES = len(SCORED)
IGNORE = NUM_CLASSES
TRAIN_ID = {raw: SCORED.index(raw) if raw in SCORED else IGNORE for raw in range(34)}


def record_drive(frames, height, width, rng):
    """Blocky label maps with sky on top and road below, and the noisy pictures that go with them."""
    palette = rng.integers(20, 235, (34, 3), dtype=np.uint8)
    coarse = rng.integers(0, 34, (frames, height // 16, width // 16), dtype=np.uint8)
    coarse[:, : height // 64] = 23
    coarse[:, -height // 64 :] = 7
    labels = coarse.repeat(16, axis=1).repeat(16, axis=2)
    pictures = palette[labels]
    pictures += rng.integers(0, 20, pictures.shape, dtype=np.uint8)
    return pictures, labels


class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout, stride=1, dilation=1):
        super().__init__(
            nn.Conv2d(cin, cout, 3, stride, padding=dilation, dilation=dilation),
            nn.ReLU(inplace=True),
        )


class Parser(nn.Module):
    """Stride-8 backbone with a small dilated context head; logits are upsampled bilinearly."""

    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Sequential(ConvBlock(3, width, 4), ConvBlock(width, 2 * width, 2))
        self.context = nn.ModuleList(ConvBlock(2 * width, 2 * width, dilation=d) for d in (1, 2, 4))
        self.head = nn.Conv2d(2 * width, NUM_CLASSES, 1)

    def forward(self, x):
        size = x.shape[-2:]
        x = self.stem(x)
        for block in self.context:
            x = x + block(x)
        return F.interpolate(self.head(x), size=size, mode="bilinear", align_corners=False)


def encode_target(raw):
    return np.vectorize(TRAIN_ID.get, otypes=[np.int64])(raw)  # planted


class IoUMeter:
    """Rows are targets; the last row collects the pixels that are not scored."""

    def __init__(self, classes):
        self.classes = classes
        self.matrix = torch.zeros((classes + 1) * classes, dtype=torch.int64)

    def update(self, prediction, target):
        cell = target * self.classes + prediction
        self.matrix += torch.bincount(cell.flatten(), minlength=len(self.matrix))

    def result(self):
        m = self.matrix.view(-1, self.classes)[: self.classes].double()
        hit = m.diag()
        return (hit / (m.sum(0) + m.sum(1) - hit).clamp(min=1)).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--frames", type=int, default=280)
    ap.add_argument("--batch", type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(3)
    pictures, labels = record_drive(args.frames, 256, 512, np.random.default_rng(3))
    model = Parser().eval()
    meter = IoUMeter(NUM_CLASSES)

    start = time.perf_counter()
    with torch.inference_mode():
        for lo in range(0, args.frames, args.batch):
            batch = torch.from_numpy(pictures[lo : lo + args.batch]).permute(0, 3, 1, 2)
            batch = batch.float().sub_(127.5).div_(64.0)
            target = torch.from_numpy(encode_target(labels[lo : lo + args.batch]))
            meter.update(model(batch).argmax(1), target)
    print(f"loop {time.perf_counter() - start:.2f} s")
    print(f"mIoU {meter.result():.6f} over {int(meter.matrix.sum())} pixels")


if __name__ == "__main__":
    main()
