# SPDX-License-Identifier: Apache-2.0
"""Gait phases from ankle sensors: the orthogonal matrix of the recurrent cell is made anew at each time step.

Source: https://github.com/lezcano/geotorch/issues/34, https://github.com/pytorch/pytorch/pull/33344
"""

import math

import torch
from torch import nn
from torch.nn.utils import parametrizations

SENSORS = 6
PHASES = 5
LENGTH = 40
BATCH = 48
STEPS = 14


def walk(generator):
    """Accelerometer and gyroscope over a few strides, and the phase at each sample."""
    pace = 0.10 + 0.08 * torch.rand(BATCH, 1, generator=generator)
    start = torch.rand(BATCH, 1, generator=generator)
    cycle = (start + pace * torch.arange(LENGTH)) % 1.0
    angle = 2 * math.pi * cycle[..., None] * torch.tensor([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    shift = torch.tensor([0.0, 0.5, 0.2, 0.9, 0.4, 0.7]) * math.pi
    signal = torch.sin(angle + shift)
    signal = signal + 0.3 * torch.randn(BATCH, LENGTH, SENSORS, generator=generator)
    edges = torch.tensor([0.12, 0.35, 0.62, 0.80])
    return signal, torch.bucketize(cycle, edges)


class OrthogonalCell(nn.Module):
    """A recurrent layer whose transition keeps the length of the state."""

    def __init__(self, inputs, width):
        super().__init__()
        self.width = width
        self.enter = nn.Linear(inputs, width)
        transition = nn.Linear(width, width, bias=False)
        self.transition = parametrizations.orthogonal(transition, orthogonal_map="cayley")
        self.bias = nn.Parameter(torch.full((width,), -0.05))

    def squash(self, state):
        """A soft threshold on the size of each unit."""
        return torch.sign(state) * torch.relu(state.abs() + self.bias)

    def forward(self, signal):
        entered = self.enter(signal)
        state = signal.new_zeros(len(signal), self.width)
        states = []
        for time in range(signal.shape[1]):
            state = self.squash(entered[:, time] + self.transition(state))  # planted
            states.append(state)
        return torch.stack(states, dim=1)


class GaitModel(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.cell = OrthogonalCell(SENSORS, width)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, PHASES))

    def forward(self, signal):
        return self.head(self.cell(signal))


def accuracy(scores, phase):
    return (scores.argmax(dim=-1) == phase).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(37)
    torch.manual_seed(37)
    model = GaitModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(STEPS):
        signal, phase = walk(generator)
        scores = model(signal)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), phase.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"gait: loss {loss.item():.5f}, right {accuracy(scores, phase):.3f}")


if __name__ == "__main__":
    main()
