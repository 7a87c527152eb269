# SPDX-License-Identifier: Apache-2.0
"""Inference in batches of many requests."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, 2, 1),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3, 2, 1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
).eval()
answers = []
with torch.inference_mode():
    for batch in torch.randn(320, 3, 64, 64).split(32):
        answers.append(model(batch).argmax(1))
answers = torch.cat(answers)
