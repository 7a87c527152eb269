# SPDX-License-Identifier: Apache-2.0
"""Detection: overlapping boxes are suppressed for one class after the other, each with its own sort and its own overlaps.

Source: merged open-mmlab/mmdetection pull request 2264 ("multiclass_nms in a batched fashion"), LibreYOLO pull request 203.
"""

import torch
from torch import nn

CLASSES, CANDIDATES, OVERLAP = 80, 200, 0.5


def overlaps(boxes):
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    return common / (area[:, None] + area[None, :] - common)


def suppress(boxes, scores):
    order = scores.argsort(descending=True)
    covered = overlaps(boxes[order]).triu(diagonal=1).amax(0)
    return order[covered < OVERLAP]


def detect(boxes, scores, labels):
    found = []
    for label in range(CLASSES):
        chosen = torch.nonzero(labels == label).squeeze(1)  # planted
        if len(chosen) == 0:
            continue
        kept = suppress(boxes[chosen], scores[chosen])  # planted
        found.append(chosen[kept])
    return torch.cat(found)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=4, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=4, padding=1), nn.ReLU()
        )
        self.boxes = nn.Conv2d(64, 4, 1)
        self.classes = nn.Conv2d(64, CLASSES, 1)

    def forward(self, images):
        features = self.features(images)
        return self.boxes(features).flatten(2).mT, self.classes(features).flatten(2).mT


torch.manual_seed(0)
detector = Detector().eval()
with torch.inference_mode():
    for batch in range(20):
        boxes, classes = detector(torch.rand(4, 3, 320, 320))
        for box, scores in zip(boxes, classes.softmax(-1), strict=True):
            corner = torch.rand(len(box), 2) * 300
            box = torch.cat([corner, corner + 10 + 20 * box[:, 2:].sigmoid()], -1)
            best, labels = (scores + 0.02 * torch.rand_like(scores)).max(-1)
            likely = best.topk(CANDIDATES).indices
            kept = detect(box[likely], best[likely], labels[likely])
