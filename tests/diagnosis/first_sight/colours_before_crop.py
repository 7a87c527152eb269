# SPDX-License-Identifier: Apache-2.0
"""Land use from aerial scenes: colours change and noise is smoothed over a full scene, of which a crop is kept.

Source: torchgeo/torchgeo pull request 3539 (order of augmentations), merged NVIDIA/cosmos-framework pull request 219.
"""

import torch
from torch import nn

USES = 10


class Colours(nn.Module):
    def __init__(self, strength=0.3):
        super().__init__()
        self.strength = strength

    def forward(self, scenes):
        factor = 1 + self.strength * (2 * torch.rand(3, len(scenes), 1, 1, 1) - 1)
        scenes = scenes * factor[0]  # planted
        mean = scenes.mean((1, 2, 3), keepdim=True)  # planted
        scenes = torch.lerp(mean, scenes, factor[1])  # planted
        grey = scenes.mean(1, keepdim=True)  # planted
        return torch.lerp(grey, scenes, factor[2]).clamp(0, 1)  # planted


class Smooth(nn.Module):
    def __init__(self, width=5, sigma=1.0):
        super().__init__()
        taps = torch.exp(-0.5 * (torch.arange(width) - width // 2).square() / sigma**2)
        self.register_buffer("taps", (taps / taps.sum()).view(1, 1, 1, -1).repeat(3, 1, 1, 1))

    def forward(self, scenes):
        scenes = nn.functional.conv2d(scenes, self.taps, padding="same", groups=3)  # planted
        return nn.functional.conv2d(scenes, self.taps.mT, padding="same", groups=3)  # planted


class Crop(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.side = side

    def forward(self, scenes):
        top, left = (int(torch.randint(size - self.side, ())) for size in scenes.shape[-2:])
        return scenes[..., top : top + self.side, left : left + self.side]


def stage(entering, leaving):
    return nn.Sequential(nn.Conv2d(entering, leaving, 3, stride=2, padding=1), nn.BatchNorm2d(leaving), nn.ReLU())


class Trainer:
    def __init__(self):
        self.augment = nn.Sequential(Colours(), Smooth(), Crop(128))  # planted
        self.model = nn.Sequential(
            stage(3, 32), stage(32, 64), stage(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, USES)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def step(self, scenes, uses):
        with torch.no_grad():
            crops = self.augment(scenes.float() / 255)  # planted
        loss = self.criterion(self.model(crops), uses)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
trainer = Trainer()
for step in range(14):
    trainer.step(torch.randint(0, 256, (8, 3, 400, 400), dtype=torch.uint8), torch.randint(USES, (8,)))
