# SPDX-License-Identifier: Apache-2.0
"""Time series: loads of households come from NumPy in double precision, and the network was made double to accept them.

Source: forum threads on "expected scalar type Float but found Double" that answer with model.double(); merged
gazprom-neft/seismiqb pull request 19, which removes float64 data.
"""

import numpy
import torch
from torch import nn

PAST, FUTURE = 168, 24


class Forecaster(nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(1, channels, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, padding=4, dilation=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, padding=8, dilation=4),
            nn.ReLU(),
        )
        self.head = nn.Linear(channels * PAST, FUTURE)

    def forward(self, past):
        return self.head(self.convolutions(past[:, None]).flatten(1))  # planted


random = numpy.random.default_rng(0)
hours = numpy.arange(20_000)
loads = 2 + numpy.sin(hours * 2 * numpy.pi / 24) + 0.1 * random.standard_normal(len(hours))
loads = (loads - loads.mean()) / loads.std()
windows = numpy.lib.stride_tricks.sliding_window_view(loads, PAST + FUTURE)

torch.manual_seed(0)
model = Forecaster().double()  # planted
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(15):
    batch = torch.from_numpy(windows[random.integers(0, len(windows), 64)])  # planted
    past, future = batch[:, :PAST], batch[:, PAST:]
    loss = nn.functional.l1_loss(model(past), future)
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()  # planted
