# SPDX-License-Identifier: Apache-2.0
"""A metric over all predictions so far, by numpy, each step."""

import numpy as np
import torch
from torch import nn

RULE = ("python-in-step", "synchronising-calls")


def auc(scores, labels):
    order = np.argsort(scores)  # planted
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = labels.sum()
    return (ranks[labels == 1].sum() - positive * (positive + 1) / 2) / max(
        positive * (len(labels) - positive), 1
    )  # planted


def build(fixed):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    x, y = torch.randn(256, 64), torch.randint(0, 2, (256,))
    scores, labels = np.random.rand(8000), np.random.randint(0, 2, 8000)

    def step():
        out = model(x)[:, 0]
        nn.functional.binary_cross_entropy_with_logits(out, y.float()).backward()
        model.zero_grad()
        if not fixed:
            auc(scores, labels)  # planted

    return step
