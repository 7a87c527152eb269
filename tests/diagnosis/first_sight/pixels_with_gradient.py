# SPDX-License-Identifier: Apache-2.0
"""Distillation of a classifier of leaves: gradients of the pixels are computed in each step, and nothing reads them.

Source: https://github.com/xu-ji/IIC/issues/5, https://github.com/kmaninis/OSVOS-PyTorch/issues/22
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Stem(nn.Module):
    """Large filters at full resolution, then small ones at an eighth of it."""

    def __init__(self, width):
        super().__init__()
        self.filters = nn.Conv2d(3, width, 7, padding=3)
        self.pool = nn.MaxPool2d(4)

    def forward(self, images):
        return self.pool(torch.relu(self.filters(images)))


def make_network(width, classes=30):
    return nn.Sequential(
        Stem(width),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, classes),
    )


class Distillation:
    def __init__(self, teacher, student, temperature=3.0):
        self.teacher, self.student, self.temperature = teacher.eval(), student, temperature

    def loss(self, images, labels):
        with torch.no_grad():
            wanted = F.softmax(self.teacher(images) / self.temperature, dim=1)
        logits = self.student(images)
        soft = F.kl_div(F.log_softmax(logits / self.temperature, dim=1), wanted, reduction="batchmean")
        return F.cross_entropy(logits, labels) + self.temperature**2 * soft


def prepare(photos):
    """Scales the pixels, and lets them have gradients for the maps of what the student looks at."""
    return ((photos.float() - 110) / 60).requires_grad_()  # planted


student = make_network(24)
distillation = Distillation(make_network(12).requires_grad_(False), student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)
photos = torch.randint(256, (128, 3, 96, 96), dtype=torch.uint8)
species = torch.randint(30, (128,))
for step in range(12):
    rows = torch.randint(len(photos), (8,))
    loss = distillation.loss(prepare(photos[rows]), species[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
