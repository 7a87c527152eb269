# SPDX-License-Identifier: Apache-2.0
"""A replay memory that grows by concatenation from step to step."""

import dataclasses

import torch
from torch import nn

RULE = "quadratic-concatenation"
GAINS = "memory"


@dataclasses.dataclass
class Replay:
    states: torch.Tensor
    at: int
    ring: bool

    def push(self, batch):
        if self.ring:
            self.states[self.at : self.at + len(batch)] = batch
            self.at = (self.at + len(batch)) % len(self.states)
        else:
            self.states = torch.cat([self.states, batch])  # planted

    def sample(self, n):
        return self.states[torch.randint(len(self.states), (n,))]


def build(fixed):
    replay = Replay(torch.randn(2048, 128), 0, fixed)
    net = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        replay.push(torch.randn(256, 128))
        optimizer.zero_grad()
        net(replay.sample(32)).square().mean().backward()
        optimizer.step()

    return step
