# SPDX-License-Identifier: Apache-2.0
"""Pathology with few slides: a frozen network computes the features of the same pictures again in each epoch.

Source: merged kumarkrishna/fastssl pull request 28 ("precaching support to speed up linear evals"), guides on transfer
learning that store the features of a frozen network.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GRADES, WIDTH = 5, 96


def stage(entering, leaving):
    return nn.Sequential(
        nn.Conv2d(entering, leaving, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(leaving),
        nn.ReLU(inplace=True),
        nn.Conv2d(leaving, leaving, 3, padding=1, bias=False),
        nn.BatchNorm2d(leaving),
        nn.ReLU(inplace=True),
    )


class Grader(nn.Module):
    """A trained head on a backbone that is not trained."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone.eval().requires_grad_(False)
        self.query = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 256, batch_first=True)
        self.head = nn.Linear(WIDTH, GRADES)

    def features(self, pictures):
        with torch.no_grad():
            return self.backbone(pictures).flatten(2).transpose(1, 2)  # planted

    def forward(self, pictures):
        parts = self.features(pictures)  # planted
        seen = self.layer(torch.cat([self.query.expand(len(parts), -1, -1), parts], 1))
        return self.head(seen[:, 0])


def train(model, slides, epochs=6):
    optimizer = torch.optim.AdamW(model.layer.parameters(), lr=1e-3)
    for _ in range(epochs):
        for pictures, grades in slides:
            loss = nn.functional.cross_entropy(model(pictures), grades)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
pictures, grades = torch.rand(64, 3, 96, 96), torch.randint(GRADES, (64,))
model = Grader(nn.Sequential(stage(3, 32), stage(32, 64), stage(64, WIDTH)))
train(model, DataLoader(TensorDataset(pictures, grades), batch_size=16, shuffle=True))
