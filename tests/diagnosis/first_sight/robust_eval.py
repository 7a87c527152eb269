# SPDX-License-Identifier: Apache-2.0
"""Clean and PGD accuracy of a small image classifier."""

import time

import torch
import torch.nn.functional as F
from torch import nn


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class SmallNet(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 32), conv_block(32, 64), conv_block(64, 128))
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(128 * 16, 512), nn.ReLU(inplace=True), nn.Linear(512, n_classes)
        )

    def forward(self, images):
        return self.head(self.features(images))


def textures(n, seed, n_classes=10):
    """Oriented gratings: the class is the orientation."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(n_classes, (n,), generator=g)
    angle = labels.float() / n_classes * torch.pi
    axis = torch.linspace(-1, 1, 32)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    phase = torch.rand(n, 3, 1, 1, generator=g) * 6.28
    wave = (angle.cos()[:, None, None] * xx + angle.sin()[:, None, None] * yy).unsqueeze(1)
    images = 0.5 + 0.25 * torch.sin(12 * wave + phase)
    images = images + 0.1 * torch.randn(images.shape, generator=g)
    return images.clamp_(0, 1), labels


def fit(model, images, labels, steps, batch=64):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for step in range(steps):
        rows = torch.randint(len(images), (batch,))
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images[rows]), labels[rows]).backward()
        optimizer.step()


def pgd(model, images, labels, eps=4 / 255, alpha=1 / 255, steps=10):
    """L-inf projected gradient ascent with a random start."""
    adv = images + torch.empty_like(images).uniform_(-eps, eps)
    adv = adv.clamp_(0, 1)
    for _ in range(steps):
        adv.requires_grad_(True)
        loss = F.cross_entropy(model(adv), labels, reduction="sum")
        loss.backward()  # planted
        with torch.no_grad():
            moved = adv + alpha * adv.grad.sign()
            adv = torch.clamp(moved, images - eps, images + eps).clamp_(0, 1)
    return adv


def main():
    torch.manual_seed(0)
    model = SmallNet()
    fit(model, *textures(1024, seed=1), steps=30)

    model.eval()
    images, labels = textures(768, seed=2)
    clean = robust = 0
    start = time.perf_counter()
    for x, y in zip(images.split(64), labels.split(64)):
        adversarial = pgd(model, x, y)
        with torch.inference_mode():
            clean += (model(x).argmax(1) == y).sum()
            robust += (model(adversarial).argmax(1) == y).sum()
    elapsed = time.perf_counter() - start
    n = len(images)
    print(f"{n} images, loop {elapsed:.2f}s")
    print(f"clean accuracy {int(clean) / n:.4f}  robust accuracy {int(robust) / n:.4f}")


if __name__ == "__main__":
    main()
