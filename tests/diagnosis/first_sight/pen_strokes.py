# SPDX-License-Identifier: Apache-2.0
"""Handwriting: a recurrent model with an attention window reads pen strokes and predicts the next offset.

Strokes are sums of harmonics with pen lifts. A convolution encodes the neighbourhood of every pen position,
then a custom gated cell with peephole terms walks through the encoded positions.
"""

import math

import torch
from torch import nn

torch.manual_seed(17)

LENGTH, BATCH, FEATURES, STATE = 320, 32, 160, 96
EPOCHS, PER_EPOCH = 2, 7


def strokes(batch):
    """(batch, LENGTH + 1, 3): dx, dy, pen lift."""
    t = torch.linspace(0, 14 * math.pi, LENGTH + 1)
    parts = []
    for _ in range(batch):
        phase = torch.rand(4) * 6.28
        speed = 0.5 + torch.rand(4)
        dx = torch.sin(speed[0] * t + phase[0]) + 0.4 * torch.sin(2.7 * speed[1] * t + phase[1])
        dy = torch.cos(speed[2] * t + phase[2]) + 0.4 * torch.sin(3.1 * speed[3] * t + phase[3])
        lift = (torch.sin(0.35 * t + phase[0]) > 0.9).float()
        parts.append(torch.stack([dx, dy, lift], dim=1))
    return torch.stack(parts)


class PeepholeCell(nn.Module):
    """An LSTM cell whose gates also see the previous cell value (not offered by nn.LSTM)."""

    def __init__(self, inputs, state):
        super().__init__()
        self.gates = nn.Linear(inputs + state, 4 * state)
        self.peep = nn.Parameter(torch.zeros(3, state))

    def forward(self, x, h, c):
        i, f, g, o = self.gates(torch.cat([x, h], dim=1)).chunk(4, dim=1)
        i = torch.sigmoid(i + self.peep[0] * c)
        f = torch.sigmoid(f + 1 + self.peep[1] * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c)
        return h, c


class PenModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.context = nn.Sequential(
            nn.ConstantPad1d((8, 0), 0.0),
            nn.Conv1d(3, FEATURES, 9),
            nn.GELU(),
            nn.ConstantPad1d((4, 0), 0.0),
            nn.Conv1d(FEATURES, FEATURES, 5),
            nn.GELU(),
        )
        self.cell = PeepholeCell(FEATURES, STATE)
        self.offset = nn.Linear(STATE, 2)
        self.lift = nn.Linear(STATE, 1)

    def forward(self, pen):
        encoded = self.context(pen.transpose(1, 2)).transpose(1, 2)
        h = encoded.new_zeros(encoded.shape[0], STATE)
        c = torch.zeros_like(h)
        trace = []
        for position in range(encoded.shape[1]):
            h, c = self.cell(encoded[:, position], h, c)  # planted
            trace.append(h)
        trace = torch.stack(trace, dim=1)
        return self.offset(trace), self.lift(trace).squeeze(-1)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        self.losses = []

    def fit_batch(self, pen):
        offset, lift = self.model(pen[:, :-1])
        target = pen[:, 1:]
        loss = nn.functional.mse_loss(offset, target[..., :2])
        loss = loss + 0.2 * nn.functional.binary_cross_entropy_with_logits(lift, target[..., 2])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
        self.optimizer.step()
        self.losses.append(loss.item())

    def epoch(self, batches):
        for pen in batches:
            self.fit_batch(pen)
        return sum(self.losses[-len(batches) :]) / len(batches)


if __name__ == "__main__":
    trainer = Trainer(PenModel())
    notebook = [strokes(BATCH) for _ in range(PER_EPOCH)]
    means = [trainer.epoch(notebook) for _ in range(EPOCHS)]
    print(f"epoch losses {means[0]:.3f} {means[-1]:.3f}")
