# SPDX-License-Identifier: Apache-2.0
"""Serves a classifier of leaves: each request builds the network and reads its weights from the disk.

Source: Canjie-Luo/MORAN_v2 issue 49 (loading takes 0.31 of 0.33 s), WelkinU/yolov5-fastapi-demo issue 3.
"""

import os
import tempfile

import torch
from torch import nn


class Leaves(nn.Module):
    def __init__(self, width=48, kinds=40):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(6),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(72 * width, 1024), nn.ReLU(), nn.Linear(1024, kinds))

    def forward(self, pictures):
        return self.head(self.body(pictures))


def load_model(path):
    model = Leaves()  # planted
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))  # planted
    return model.eval()


class Service:
    def __init__(self, path):
        self.path = path

    def predict(self, pictures):
        model = load_model(self.path)  # planted
        with torch.inference_mode():
            chances = model(pictures).softmax(-1)
        best, kinds = chances.topk(3)
        pairs = zip(kinds.tolist(), best.tolist(), strict=True)
        return [dict(zip(kind, chance, strict=True)) for kind, chance in pairs]


def requests(count):
    for _ in range(count):
        pixels = torch.randint(0, 256, (4, 3, 128, 128), dtype=torch.uint8)
        yield pixels.float().div(255).sub(0.5)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "leaves.pt")
    torch.save(Leaves().state_dict(), path)
    service = Service(path)
    for pictures in requests(40):
        service.predict(pictures)
