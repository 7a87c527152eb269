# SPDX-License-Identifier: Apache-2.0
"""Deletion test for Grad-CAM maps of a leaf classifier: how fast does the score drop when hot pixels are removed?"""

import time

import torch
import torch.nn.functional as F
from torch import nn

CLASSES, SIZE = 12, 64


class LeafNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()

        def stage(cin, cout):
            return nn.Sequential(nn.Conv2d(cin, cout, 3, 2, 1), nn.ReLU(), nn.Conv2d(cout, cout, 3, 1, 1), nn.ReLU())

        self.stages = nn.Sequential(stage(3, width), stage(width, 2 * width), stage(2 * width, 4 * width))
        self.classify = nn.Linear(4 * width, CLASSES)

    def forward(self, x):
        return self.classify(self.stages(x).mean((2, 3)))


def leaf_images(count, generator):
    """Bright blobs on a textured background; the class decides position and tint."""
    label = torch.randint(CLASSES, (count,), generator=generator)
    axis = torch.linspace(-1, 1, SIZE)
    angle = label * (6.2832 / CLASSES)
    dx = axis[None, None, :] - 0.5 * torch.cos(angle)[:, None, None]
    dy = axis[None, :, None] - 0.5 * torch.sin(angle)[:, None, None]
    blob = torch.exp(-8 * (dx.square() + dy.square()))
    tint = torch.stack([0.5 + 0.5 * torch.cos(angle + s) for s in (0.0, 2.1, 4.2)], dim=1)
    noise = 0.2 * torch.randn(count, 3, SIZE, SIZE, generator=generator)
    return blob[:, None] * tint[:, :, None, None] + noise, label


class GradCam:
    """Class activation maps from the output of one layer and the gradient that reaches it."""

    def __init__(self, model, layer):
        self.model = model
        self.activation = self.gradient = None
        self.handles = [
            layer.register_forward_hook(self.on_forward),
            layer.register_full_backward_hook(self.on_backward),
        ]

    def on_forward(self, module, inputs, output):
        self.activation = output.detach().clone()

    def on_backward(self, module, grad_input, grad_output):
        self.gradient = grad_output[0].detach().clone()

    def maps(self, images, labels):
        scores = self.model(images.requires_grad_()).gather(1, labels[:, None])
        torch.autograd.grad(scores.sum(), images)
        weight = self.gradient.mean((2, 3), keepdim=True)
        heat = F.relu((weight * self.activation).sum(1, keepdim=True))
        return F.interpolate(heat, size=images.shape[-2:], mode="bilinear", align_corners=False)

    def close(self):
        for handle in self.handles:
            handle.remove()


@torch.no_grad()
def deletion_curve(model, images, labels, heat, fractions):
    """Mean class probability after the hottest share of the pixels has been blanked."""
    order = heat.flatten(1).argsort(dim=1, descending=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(order.shape[1]).expand_as(order))
    rank = rank.view(len(images), 1, SIZE, SIZE)
    curve = []
    for fraction in fractions:
        kept = images * (rank >= fraction * SIZE * SIZE)
        p = model(kept).softmax(1).gather(1, labels[:, None])
        curve.append(p.mean())
    return torch.stack(curve)


def fit(model, generator, steps=40):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        images, labels = leaf_images(32, generator)
        loss = F.cross_entropy(model(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def main(batches=250, size=8):
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(2)
    model = LeafNet()
    print(f"fitted, loss {fit(model, generator):.4f}")
    model.eval().requires_grad_(False)
    fractions = (0.0, 0.1, 0.3)
    curves = []
    start = time.perf_counter()
    for _ in range(batches):
        images, labels = leaf_images(size, generator)
        cam = GradCam(model, model.stages[1])
        heat = cam.maps(images, labels)  # planted
        curves.append(deletion_curve(model, images.detach(), labels, heat, fractions))
    print(f"loop {time.perf_counter() - start:.2f} s")
    mean = torch.stack(curves).mean(0)
    print("deletion curve", " ".join(f"{f:.1f}:{v:.6f}" for f, v in zip(fractions, mean.tolist())))


if __name__ == "__main__":
    main()
