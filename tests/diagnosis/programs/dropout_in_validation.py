# SPDX-License-Identifier: Apache-2.0
"""A training loop that validates without model.eval()."""

import torch
from torch import nn

RULE = "training-mode"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.3))])
        self.head = nn.Linear(128, 4)

    def forward(self, x):
        return self.head(self.body(x))


class Fit:
    def __init__(self, fixed):
        self.fixed, self.net = fixed, Net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3)
        self.x, self.y = torch.randn(16, 128), torch.randint(4, (16,))
        self.held_out, self.answers = torch.randn(512, 128), torch.randint(4, (512,))

    @torch.no_grad()
    def validate(self):
        return (self.net(self.held_out).argmax(1) == self.answers).float().mean()  # planted

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.net.train()(self.x), self.y).backward()
        self.optimizer.step()
        self.net.train(not self.fixed)
        return self.validate()


def build(fixed):
    return Fit(fixed).step
