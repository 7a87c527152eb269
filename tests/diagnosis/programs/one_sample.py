# SPDX-License-Identifier: Apache-2.0
"""A model that is called sample by sample."""

import torch
from torch import nn

RULE = ("python-loop-over-rows", "many-small-operators")


def build(fixed):
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).eval()
    x = torch.randn(64, 128)

    @torch.inference_mode()
    def step():
        if fixed:
            return model(x)
        return torch.stack([model(sample) for sample in x])  # planted

    return step
