# SPDX-License-Identifier: Apache-2.0
"""Painted tiles in the style of a glaze: the image is fitted, and the network that judges it gets gradients too.

Source: https://docs.pytorch.org/tutorials/advanced/neural_style_tutorial.html, https://github.com/facebookresearch/NeuralCompression/pull/8
"""

import torch
from torch import nn

SIDE = 48
BATCH = 1
STEPS = 20
STYLE_WEIGHT = 40.0


class Features(nn.Module):
    """Layers of a trained classifier; the outputs of each stage are returned."""

    def __init__(self, widths=(64, 128, 256)):
        super().__init__()
        stages = []
        before = 3
        for width in widths:
            stages.append(
                nn.Sequential(
                    nn.Conv2d(before, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU()
                )
            )
            before = width
        self.stages = nn.ModuleList(stages)

    def forward(self, image):
        outputs = []
        for place, stage in enumerate(self.stages):
            if place:
                image = nn.functional.avg_pool2d(image, 2)
            image = stage(image)
            outputs.append(image)
        return outputs


def load_features(seed):
    """The judge with its weights, as it would come from a checkpoint."""
    torch.manual_seed(seed)
    network = Features()
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
            nn.init.zeros_(module.bias)
    return network.eval()  # planted


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat[0].numel()


def brush(generator, coarse):
    """A random painting with strokes of a given size."""
    paint = torch.rand(BATCH, 3, coarse, coarse, generator=generator)
    return nn.functional.interpolate(paint, size=(SIDE, SIDE), mode="bicubic").clamp(0, 1)


def total_variation(image):
    across = (image[..., 1:] - image[..., :-1]).abs().mean()
    return across + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()


def style_loss(outputs, wanted):
    return sum(nn.functional.mse_loss(gram(a), b) for a, b in zip(outputs, wanted))


def main():
    generator = torch.Generator().manual_seed(31)
    judge = load_features(31)
    motif = brush(generator, 6)
    glaze = brush(generator, 24)
    with torch.no_grad():
        motif_features = judge(motif)[-1]
        glaze_grams = [gram(output) for output in judge(glaze)]
    image = motif.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([image], lr=0.02)
    for step in range(STEPS):
        outputs = judge(image)
        loss = nn.functional.mse_loss(outputs[-1], motif_features)
        loss = loss + STYLE_WEIGHT * style_loss(outputs, glaze_grams) + 0.1 * total_variation(image)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"tiles: loss {loss.item():.5f}, mean {image.mean().item():.5f}")


if __name__ == "__main__":
    main()
