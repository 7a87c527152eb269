# SPDX-License-Identifier: Apache-2.0
"""Gradients of four small batches added up and clipped."""

import torch
from torch import nn

RULE = None


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(128, 512), nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 1000)
        self.x, self.y = torch.randn(256, 128), torch.randint(0, 10, (256,))

    def step(self):
        for x, y in zip(self.x.chunk(4), self.y.chunk(4)):
            (nn.functional.cross_entropy(self.model(x), y) / 4).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)


def build(fixed):
    return Trainer().step
