# SPDX-License-Identifier: Apache-2.0
"""Distils a large image classifier into a small one: the teacher runs without gradients, and each crop is new."""

import torch
from torch import nn
from torch.nn import functional as F


def network(width, blocks):
    layers = [nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    for block in range(blocks):
        inputs, width = width, 2 * width if block % 2 else width
        layers += [nn.Conv2d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if block % 2 else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 20))


class Distillation:
    def __init__(self, teacher, student, temperature=4.0, share=0.7):
        self.teacher, self.student = teacher.eval().requires_grad_(False), student
        self.temperature, self.share = temperature, share

    def __call__(self, images, labels):
        with torch.no_grad():
            told = self.teacher(images)
        answered = self.student(images)
        soft = F.kl_div(
            F.log_softmax(answered / self.temperature, 1),
            F.log_softmax(told / self.temperature, 1),
            reduction="batchmean",
            log_target=True,
        )
        return self.share * self.temperature**2 * soft + (1 - self.share) * F.cross_entropy(answered, labels)


def cropped(images, size=32):
    top, left = torch.randint(0, images.shape[-1] - size, (2,)).tolist()
    images = images[..., top : top + size, left : left + size]
    return images.flip(-1) if torch.rand(()) < 0.5 else images


torch.manual_seed(0)
criterion = Distillation(network(32, 4), network(16, 4))
optimizer = torch.optim.SGD(criterion.student.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=14)
photos, labels = torch.rand(448, 3, 40, 40), torch.randint(0, 20, (448,))
total = torch.zeros(())
for chosen in torch.randperm(448).split(32):
    loss = criterion(cropped(photos[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    total += loss.detach()
print(f"mean loss {total.item() / 14:.3f}")
