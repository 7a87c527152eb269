# SPDX-License-Identifier: Apache-2.0
"""A Trainer that logs the norm of every parameter's gradient."""

import torch
from torch import nn

RULE = ("synchronising-calls", "many-small-operators", "python-loop-over-rows")


class Trainer:
    def __init__(self, fixed):
        self.fixed = fixed
        self.model = nn.Sequential(
            *[layer for _ in range(12) for layer in (nn.Linear(96, 96), nn.GELU())], nn.Linear(96, 4)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.logs = {}

    def log_gradients(self):
        for name, p in self.model.named_parameters():
            self.logs[name] = p.grad.norm().item()  # planted

    def training_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.model(x), y)

    def fit_one(self, batch):
        loss = self.training_step(batch)
        loss.backward()
        if not self.fixed:
            self.log_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad()


def build(fixed):
    trainer = Trainer(fixed)
    x, y = torch.randn(64, 96), torch.randint(0, 4, (64,))
    return lambda: trainer.fit_one((x, y))
