# SPDX-License-Identifier: Apache-2.0
"""Goods on shelves: photos are cut down to half size on the way in and counted by a density map, without training.

Source: written for this set
"""

import io

import numpy as np
import torch
from PIL import Image
from torch import nn

SIDE = 192
SHELVES = 112
BATCH = 8


def photograph(random):
    """A shelf with rows of boxes, as the camera sends it."""
    picture = np.full((SIDE, SIDE, 3), 60, dtype=np.uint8)
    boxes = int(random.integers(6, 24))
    for _ in range(boxes):
        top, left = random.integers(0, SIDE - 40, 2)
        high, wide = random.integers(16, 40, 2)
        picture[top : top + high, left : left + wide] = random.integers(80, 255, 3)
    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="JPEG", quality=85)
    return file.getvalue(), boxes


def read_photo(data):
    photo = Image.open(io.BytesIO(data))
    photo.draft("RGB", (SIDE // 2, SIDE // 2))
    return np.asarray(photo)


class DensityNet(nn.Module):
    """A map whose sum is the number of goods."""

    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=2, dilation=2),
            nn.ReLU(),
            nn.Conv2d(2 * width, 1, 1),
            nn.Softplus(),
        )
        self.register_buffer("mean", torch.tensor([110.0, 105.0, 100.0]).view(1, 3, 1, 1))
        self.register_buffer("spread", torch.tensor([60.0, 58.0, 57.0]).view(1, 3, 1, 1))

    def forward(self, photos):
        light = (photos.permute(0, 3, 1, 2).float() - self.mean) / self.spread
        return self.net(light).sum(dim=(1, 2, 3))


def stack_photos(batch):
    return torch.from_numpy(np.stack([read_photo(data) for data in batch]))


def main():
    random = np.random.default_rng(127)
    torch.manual_seed(127)
    shelves = [photograph(random) for _ in range(SHELVES)]
    files = [data for data, _ in shelves]
    net = DensityNet().eval()
    counted = []
    with torch.inference_mode():
        for start in range(0, SHELVES, BATCH):
            counted.append(net(stack_photos(files[start : start + BATCH])))
    counted = torch.cat(counted)
    print(f"shelves: {sum(count for _, count in shelves)} boxes, sum {counted.sum().item():.3f}")


if __name__ == "__main__":
    main()
