# SPDX-License-Identifier: Apache-2.0
"""Fraud: the area under the curve of all answers so far is computed again after each batch.

Source: TorchMetrics' documentation on values per step against compute() at the end of an epoch.
"""

import torch
from torch import nn

torch.manual_seed(6)


class Area:
    """Area under the ROC curve by ranks."""

    def __init__(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.append(scores.detach())
        self.labels.append(labels)

    def compute(self):
        scores, labels = torch.cat(self.scores), torch.cat(self.labels)  # planted
        ranks = scores.argsort().argsort().float() + 1  # planted
        positive = labels.sum()  # planted
        return ((ranks * labels).sum() - positive * (positive + 1) / 2) / (
            positive * (len(labels) - positive)
        )  # planted


class Callback:
    def __init__(self):
        self.area, self.curve = Area(), []

    def after_batch(self, scores, labels):
        self.area.update(scores, labels)
        self.curve.append(self.area.compute())  # planted


net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 1), nn.Flatten(0))
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
callback = Callback()
for _ in range(30):
    payments = torch.randn(4096, 30)
    fraud = (torch.rand(4096) < 0.1).float()
    answer = net(payments)
    sgd.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(answer, fraud).backward()
    sgd.step()
    callback.after_batch(answer, fraud)  # planted
