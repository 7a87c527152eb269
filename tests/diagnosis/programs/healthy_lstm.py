# SPDX-License-Identifier: Apache-2.0
"""An LSTM, trained."""

import torch
from torch import nn

RULE = None


def build(fixed):
    rnn, head = nn.LSTM(64, 128, 2, batch_first=True), nn.Linear(128, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], fused=True)

    def step():
        x = torch.randn(32, 40, 64)
        loss = nn.functional.mse_loss(head(rnn(x)[0][:, -1])[:, 0], x.mean((1, 2)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step
