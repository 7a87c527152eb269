# SPDX-License-Identifier: Apache-2.0
"""A forecaster that is watched for anomalies in each of its batches."""

import contextlib
import warnings

import torch
from torch import nn

RULE = "anomaly-mode"


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 32, 2, batch_first=True), nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def build(fixed):
    warnings.filterwarnings("ignore", message="Anomaly Detection")
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    x, y = torch.randn(16, 20, 8), torch.randn(16, 1)
    watch = contextlib.nullcontext if fixed else torch.autograd.detect_anomaly

    def fit_batch():
        with watch():  # planted
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()

    return fit_batch
