# SPDX-License-Identifier: Apache-2.0
"""A logger that writes every sample's loss."""

import logging
import tempfile

import torch
from torch import nn

RULE = "logging-in-step"


def build(fixed):
    log = logging.getLogger(f"losses, {fixed}")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.StreamHandler(tempfile.TemporaryFile("w"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))

    def step():
        losses = nn.functional.cross_entropy(model(x), y, reduction="none")
        losses.mean().backward()
        model.zero_grad()
        if not fixed:
            for i, loss in enumerate(losses.detach().tolist()):
                log.info("sample %d loss %.4f", i, loss)  # planted

    return step
