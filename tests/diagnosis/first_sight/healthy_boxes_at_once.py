# SPDX-License-Identifier: Apache-2.0
"""Detects objects: low scores are dropped first, and boxes of all classes are suppressed in one matrix."""

import torch
from torch import nn

CLASSES = 20


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for outputs in (24, 48, 96):
            layers += [
                nn.Conv2d(width, outputs, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.SiLU(),
            ]
            layers += [nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU()]
            width = outputs
        self.backbone = nn.Sequential(*layers)
        self.head = nn.Conv2d(width, CLASSES + 4, 1)

    def forward(self, photos):
        found = self.head(self.backbone(photos))
        rows, columns = found.shape[2:]
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        centres = 8 * torch.stack([x, y], -1).flatten(0, 1) + 4
        scores, sides = found.flatten(2).transpose(1, 2).split([CLASSES, 4], dim=2)
        sides = 24 * nn.functional.softplus(sides)
        return scores.sigmoid(), torch.cat([centres - sides[..., :2], centres + sides[..., 2:]], dim=2)


def overlaps(boxes):
    area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
    low = torch.maximum(boxes[..., None, :, :2], boxes[..., :, None, :2])
    high = torch.minimum(boxes[..., None, :, 2:], boxes[..., :, None, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    return shared / (area[..., None, :] + area[..., :, None] - shared)


def detections(scores, boxes, count=150, threshold=0.5):
    best, labels = scores.max(-1)
    best, order = best.topk(count)
    labels = labels.gather(1, order)
    boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4))
    covered = overlaps(boxes + 2000.0 * labels[..., None]).triu(1).amax(1)
    return best * (covered < threshold), labels, boxes


torch.manual_seed(0)
detector = Detector().eval()
kept = 0
with torch.inference_mode():
    for batch in range(10):
        photos = torch.rand(6, 3, 256, 256)
        scores, labels, boxes = detections(*detector(photos))
        kept += (scores > 0.3).sum()
print(f"{int(kept)} objects")
