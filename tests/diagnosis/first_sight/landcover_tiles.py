# SPDX-License-Identifier: Apache-2.0
"""Land-cover classification from random crops of multispectral tiles."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TILE, CROP, BANDS, CLASSES = 192, 48, 4, 6


class LandCoverTiles(Dataset):
    """Tiles are stored as 16-bit digital numbers; every access returns one augmented crop."""

    def __init__(self, tiles, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, CLASSES, (tiles,), generator=generator)
        level = 1500 + 1000 * torch.rand(tiles, BANDS, 1, 1, generator=generator)
        level += 600 * torch.randn(CLASSES, BANDS, 1, 1, generator=generator)[self.labels]
        texture = 150 * torch.randn(16, BANDS, TILE, TILE, generator=generator)
        self.tiles = (level + texture[torch.arange(tiles) % 16]).clamp(0, 10_000).to(torch.int16)

    def __len__(self):
        return len(self.tiles)

    def atmosphere(self, scene):
        reflectance = scene.float() / 10_000
        haze = 0.05 * torch.rand(BANDS, 1, 1)
        gamma = 0.8 + 0.4 * torch.rand(BANDS, 1, 1)
        return torch.pow(reflectance + haze, gamma)

    def crop(self, scene):
        top, left = torch.randint(0, TILE - CROP + 1, (2,)).tolist()
        return scene[:, top : top + CROP, left : left + CROP]

    def flip(self, scene):
        horizontal, vertical = (torch.rand(2) < 0.5).tolist()
        dims = [dim for dim, wanted in ((1, vertical), (2, horizontal)) if wanted]
        return torch.flip(scene, dims) if dims else scene

    def __getitem__(self, index):
        scene = self.tiles[index]
        scene = self.crop(self.atmosphere(scene))  # planted
        return self.flip(scene), self.labels[index]


class LandCoverNet(nn.Sequential):
    def __init__(self, width=16):
        super().__init__(
            nn.Conv2d(BANDS, width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, CLASSES),
        )


def main():
    torch.manual_seed(80)
    data = LandCoverTiles(640, seed=81)
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
    model = LandCoverNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, fused=True)
    for epoch in range(7):
        correct, loss_sum = torch.zeros(()), torch.zeros(())
        for scenes, labels in loader:
            logits = model(scenes)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (logits.detach().argmax(1) == labels).sum()
            loss_sum += loss.detach()
        print(
            f"epoch {epoch}: loss {loss_sum.item() / len(loader):.4f}, "
            f"accuracy {correct.item() / (len(loader) * 32):.3f}"
        )


if __name__ == "__main__":
    main()
