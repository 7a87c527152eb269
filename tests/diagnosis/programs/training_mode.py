# SPDX-License-Identifier: Apache-2.0
"""A server that forgot model.eval()."""

import torch
from torch import nn

RULE = "training-mode"


def build(fixed):
    model = nn.Sequential(
        *[
            m
            for _ in range(4)
            for m in (nn.Linear(128, 1024), nn.ReLU(), nn.Dropout(0.5), nn.Linear(1024, 128), nn.Dropout(0.1))
        ]
    )
    if fixed:
        model.eval()

    @torch.inference_mode()
    def step():
        request = torch.randn(64, 128)
        return model(request).argmax(1).tolist()  # planted

    return step
