# SPDX-License-Identifier: Apache-2.0
"""Vision: street scene segmentation with a small encoder and decoder, and running mean IoU as the metric.

Scenes are stacks of horizontal bands and random boxes with a class-dependent colour. The trainer keeps a
confusion matrix over the epoch and shows the mean IoU after every batch, as the progress bar wants it.
"""

import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 19
HEIGHT, WIDTH = 96, 160
BATCH, STEPS = 8, 16


class Streets:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.palette = torch.rand(CLASSES, 3, generator=self.generator)

    def _integer(self, low, high):
        return int(torch.randint(low, high, (), generator=self.generator))

    def scene(self):
        label = torch.zeros(HEIGHT, WIDTH, dtype=torch.long)
        horizon = self._integer(30, 50)
        label[horizon:] = 1
        label[horizon + 25 :] = 2
        for _ in range(14):
            top, left = self._integer(0, HEIGHT - 12), self._integer(0, WIDTH - 12)
            tall, wide = self._integer(6, 40), self._integer(6, 40)
            label[top : top + tall, left : left + wide] = self._integer(3, CLASSES)
        return label

    def batch(self, size):
        label = torch.stack([self.scene() for _ in range(size)])
        image = self.palette[label].permute(0, 3, 1, 2)
        noise = torch.randn(image.shape, generator=self.generator)
        return (image + 0.15 * noise).contiguous(memory_format=torch.channels_last), label


def block(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class SegmentNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = block(3, width, 2)
        self.down = block(width, 2 * width, 2)
        self.deep = nn.Sequential(block(2 * width, 2 * width), block(2 * width, 2 * width))
        self.skip = nn.Conv2d(width, 2 * width, 1)
        self.head = nn.Conv2d(2 * width, CLASSES, 1)

    def forward(self, image):
        near = self.stem(image)
        far = F.interpolate(self.deep(self.down(near)), scale_factor=2, mode="nearest")
        return F.interpolate(self.head(far + self.skip(near)), size=image.shape[2:], mode="bilinear")


class MeanIoU:
    """Running confusion matrix, rows are truth and columns are predictions."""

    def __init__(self, classes):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes)

    def update(self, predicted, truth):
        predicted, truth = predicted.flatten(), truth.flatten()
        self.matrix += confusion(predicted, truth, self.classes)

    def value(self):
        hit = self.matrix.diagonal()
        union = self.matrix.sum(0) + self.matrix.sum(1) - hit
        seen = union > 0
        return (hit[seen] / union[seen]).mean().item()


def confusion(predicted, truth, classes):
    counts = torch.zeros(classes, classes)
    for row in range(classes):
        for column in range(classes):
            counts[row, column] = ((truth == row) & (predicted == column)).sum()  # planted
    return counts


def main():
    torch.manual_seed(1)
    streets = Streets(seed=2)
    net = SegmentNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    metric = MeanIoU(CLASSES)
    for step in range(STEPS):
        image, label = streets.batch(BATCH)
        logits = net(image)
        loss = F.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(logits.detach().argmax(1), label)
        shown = metric.value()
    print(f"loss {loss.item():.4f} mean IoU {shown:.4f}")


if __name__ == "__main__":
    main()
