# SPDX-License-Identifier: Apache-2.0
"""Load of a power grid: the trend is a mean of 169 hours, which sums 169 numbers for each hour; running sums need two.

Source: https://github.com/kornia/kornia/issues/2246, https://github.com/thuml/Autoformer
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Decomposition(nn.Module):
    """Splits a series into its trend and what varies around it."""

    def __init__(self, window):
        super().__init__()
        self.window = window

    def moving_mean(self, series):
        padded = F.pad(series, (self.window // 2, self.window // 2), mode="replicate")
        return F.avg_pool1d(padded, self.window, stride=1)  # planted

    def forward(self, series):
        trend = self.moving_mean(series)
        return series - trend, trend


class Layer(nn.Module):
    def __init__(self, width, window):
        super().__init__()
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.split = Decomposition(window)

    def forward(self, x):
        return self.split(x + torch.relu(self.mix(x)))


class Forecaster(nn.Module):
    def __init__(self, past=720, ahead=48, width=16, window=169):
        super().__init__()
        self.first = Decomposition(window)
        self.enter = nn.Conv1d(1, width, 3, padding=1)
        self.layers = nn.ModuleList([Layer(width, window) for _ in range(2)])
        self.leave = nn.Conv1d(width, 1, 1)
        self.season, self.trend = nn.Linear(past, ahead), nn.Linear(past, ahead)

    def forward(self, past):
        season, trend = self.first(past)
        hidden = self.enter(season)
        for layer in self.layers:
            hidden, more = layer(hidden)
            trend = trend + more.mean(1, keepdim=True)
        return (self.season(self.leave(hidden)) + self.trend(trend)).squeeze(1)


hours = torch.arange(20_000.0)
load = torch.sin(hours * 6.2832 / 24) + 0.5 * torch.sin(hours * 6.2832 / 168) + 0.1 * torch.randn(len(hours))
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(16):
    starts = torch.randint(len(load) - 768, (24, 1))
    windows = load[starts + torch.arange(768)]
    loss = F.mse_loss(model(windows[:, None, :720]), windows[:, 720:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"error {loss.item():.4f}")
