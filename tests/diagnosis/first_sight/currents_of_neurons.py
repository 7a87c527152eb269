# SPDX-License-Identifier: Apache-2.0
"""Currents of leaky neurons: each moment is written into one tensor, and the backward pass copies all of it each time.

Source: https://github.com/pytorch/pytorch/pull/89842, https://github.com/huggingface/trl/issues/6553
"""

import torch
from torch import nn

torch.manual_seed(0)


class Leaky(nn.Module):
    """Neurons whose potential leaks, with a time constant for each, and that drive each other."""

    def __init__(self, inward, neurons):
        super().__init__()
        self.drive = nn.Linear(inward, neurons)
        self.mutual = nn.Linear(neurons, neurons, bias=False)
        self.leak = nn.Parameter(torch.linspace(-2, 2, neurons))

    def forward(self, currents):
        driven, leak = self.drive(currents), self.leak.sigmoid()
        potential = torch.zeros_like(driven[:, 0])
        trace = torch.zeros_like(driven)
        for moment, inward in enumerate(driven.unbind(1)):
            potential = torch.lerp(torch.tanh(inward + self.mutual(potential)), potential, leak)
            trace[:, moment] = potential  # planted
        return trace


class Readout(nn.Module):
    def __init__(self, neurons=96):
        super().__init__()
        self.cells = Leaky(8, neurons)
        self.head = nn.Sequential(nn.Linear(neurons, neurons), nn.ReLU(), nn.Linear(neurons, 1))

    def forward(self, currents):
        return self.head(self.cells(currents)).squeeze(2)


def recordings(count, batch=48, moments=100):
    for _ in range(count):
        currents = torch.randn(batch, moments, 8)
        yield currents, currents.mean(2).cumsum(1) / 10


model = Readout()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for currents, voltage in recordings(20):
    loss = nn.functional.mse_loss(model(currents), voltage)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
