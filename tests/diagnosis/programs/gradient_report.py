# SPDX-License-Identifier: Apache-2.0
"""A trainer with a callback that reads the gradient norm of each parameter for a dashboard."""

import torch
from torch import nn

RULE = "synchronising-calls"


class GradientReport:
    def __init__(self):
        self.norms = {}

    def on_after_backward(self, trainer):
        named = trainer.model.named_parameters()
        self.norms = {name: p.grad.norm().item() for name, p in named}  # planted


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)

    def emit(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def training_step(self, x, y):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(x), y).backward()
        self.emit("on_after_backward")
        self.optimizer.step()


def build(fixed):
    layers = [m for _ in range(12) for m in (nn.Linear(48, 48), nn.LayerNorm(48), nn.GELU())]
    trainer = Trainer(nn.Sequential(*layers, nn.Linear(48, 4)), [] if fixed else [GradientReport()])
    x, y = torch.randn(16, 48), torch.randint(4, (16,))
    return lambda: trainer.training_step(x, y)
