# SPDX-License-Identifier: Apache-2.0
"""Cells in microscope images: the worker sends seven small tensors for each image, each in separate shared memory.

Source: https://github.com/roboflow/rf-detr/pull/1399, https://github.com/pytorch/vision/pull/1795
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
FIELDS = ("boxes", "labels", "area", "crowd", "number", "size", "original")


class Cells(Dataset):
    def __init__(self, count):
        self.images = torch.rand(count, 1, 32, 32)
        self.boxes = torch.rand(count, 8, 4)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, n):
        boxes = self.boxes[n].clone()
        target = {
            "boxes": boxes,
            "labels": (boxes[:, 0] > 0.5).long(),
            "area": boxes[:, 2] * boxes[:, 3],
            "crowd": torch.zeros(8, dtype=torch.bool),
            "number": torch.tensor([n]),
            "size": torch.tensor([32, 32]),
            "original": torch.tensor([64, 64]),
        }
        return self.images[n].clone(), target


def collate(samples):
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), list(targets)  # planted


def field(targets, name):
    return torch.stack([target[name] for target in targets])


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.boxes, self.labels = nn.Linear(256, 32), nn.Linear(256, 8)

    def forward(self, images):
        hidden = self.body(images)
        return self.boxes(hidden).view(-1, 8, 4), self.labels(hidden)


if __name__ == "__main__":
    loader = DataLoader(Cells(960), batch_size=64, num_workers=1, collate_fn=collate, persistent_workers=True)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for images, targets in loader:
            boxes, labels = model(images)
            loss = nn.functional.l1_loss(boxes, field(targets, "boxes"))
            loss = loss + nn.functional.binary_cross_entropy_with_logits(labels, field(targets, "labels").float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
