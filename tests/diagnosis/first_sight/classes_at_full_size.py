# SPDX-License-Identifier: Apache-2.0
"""Satellite images: features are enlarged first and classified at full size, although both orders give the same.

Source: heads of FCN, DeepLab and SegFormer, which classify at low resolution and enlarge the scores.
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)


def block(a, b, stride):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class LandCover(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(block(4, 32, 2), block(32, 64, 2), block(64, 96, 2))
        self.classes = nn.Conv2d(96, 7, 1)

    def forward(self, x):
        size = x.shape[-2:]
        x = self.encoder(x)
        x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)  # planted
        return self.classes(x)  # planted


model = LandCover()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
tiles = [(torch.randn(4, 4, 128, 128), torch.randint(7, (4, 128, 128))) for _ in range(3)]
for epoch in range(4):
    for image, cover in tiles:
        optimizer.zero_grad()
        loss = criterion(model(image), cover)
        loss.backward()  # planted
        optimizer.step()
