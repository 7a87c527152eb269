# SPDX-License-Identifier: Apache-2.0
"""A recurrent network stepped by hand over time."""

import torch
from torch import nn

RULE = ("python-loop-over-rows", "many-small-operators")


class Encoder(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed
        self.cell = nn.LSTMCell(32, 48)
        self.lstm = nn.LSTM(32, 48, batch_first=True)
        self.head = nn.Linear(48, 1)

    def forward(self, x):
        if self.fixed:
            return self.head(self.lstm(x)[0][:, -1])
        h = c = x.new_zeros(x.shape[0], 48)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))  # planted
        return self.head(h)


def build(fixed):
    model = Encoder(fixed)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x, y = torch.randn(16, 60, 32), torch.randn(16, 1)

    def step():
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step
