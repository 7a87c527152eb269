# SPDX-License-Identifier: Apache-2.0
"""The memory of an agent drops its oldest rows by copying all others."""

import torch
from torch import nn

RULE = "shifted-buffer"


class Memory:
    def __init__(self, capacity, width, fixed):
        self.rows = torch.zeros(capacity, width)
        self.at = 0
        self.fixed = fixed

    def add(self, new):
        if not self.fixed:
            self.rows = torch.cat((self.rows[len(new) :], new))  # planted
            return
        self.rows[self.at : self.at + len(new)] = new
        self.at = (self.at + len(new)) % len(self.rows)

    def draw(self, count):
        return self.rows[torch.randint(len(self.rows), (count,))]


def build(fixed):
    memory = Memory(64_000, 16, fixed)
    model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        memory.add(torch.randn(64, 16))
        loss = model(memory.draw(512)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
