# SPDX-License-Identifier: Apache-2.0
"""Forecasts traffic with a graph that is learned: degrees become diagonal matrices that scale it by two products.

Source: merged tkipf/keras-gcn pull request 15 (broadcasting in place of an N by N diagonal matrix); symmetric
normalisations of many graph networks, written as products with torch.diag.
"""

import torch
from torch import nn

SENSORS, PAST, FUTURE = 640, 12, 3


class LearnedGraph(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.senders = nn.Parameter(torch.randn(SENSORS, width))
        self.receivers = nn.Parameter(torch.randn(SENSORS, width))

    def forward(self):
        graph = (self.senders @ self.receivers.T).relu() + torch.eye(SENSORS)
        scale = torch.diag(graph.sum(1).rsqrt())  # planted
        return scale @ graph @ scale  # planted


class Forecaster(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.graph = LearnedGraph()
        self.enter = nn.Linear(PAST, width)
        self.mix = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.leave = nn.Linear(width, FUTURE)

    def forward(self, past):
        graph = self.graph()  # planted
        hidden = self.enter(past)
        for layer in self.mix:
            hidden = hidden + layer(graph @ hidden).relu()
        return self.leave(hidden)


def batches(count, size):
    for _ in range(count):
        flow = torch.rand(size, SENSORS, PAST + FUTURE)
        yield flow[..., :PAST], flow[..., PAST:]


torch.manual_seed(0)
model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
for past, future in batches(60, 16):
    loss = nn.functional.l1_loss(model(past), future)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
