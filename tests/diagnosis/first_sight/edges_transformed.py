# SPDX-License-Identifier: Apache-2.0
"""Predicts traffic on roads: a layer is applied to the sender of each edge, twenty times as often as there are nodes.

Source: DGL's GraphConv, which multiplies by the weight before it aggregates, and PyTorch Geometric's GCNConv, which
transforms nodes before it propagates.
"""

import torch
from torch import nn


class RoadLayer(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(inputs, outputs), nn.LeakyReLU(0.1))
        self.own = nn.Linear(inputs, outputs)

    def forward(self, crossings, sender, receiver):
        messages = self.message(crossings[sender])  # planted
        arrived = messages.new_zeros(len(crossings), messages.shape[1]).index_add(0, receiver, messages)
        return (self.own(crossings) + arrived / 20).relu()


class TrafficNet(nn.Module):
    def __init__(self, sensors: int, hours: int, width: int = 96):
        super().__init__()
        self.layers = nn.ModuleList([RoadLayer(sensors, width), RoadLayer(width, width)])
        self.predict = nn.Linear(width, hours)

    def forward(self, crossings, sender, receiver):
        for layer in self.layers:
            crossings = layer(crossings, sender, receiver)
        return self.predict(crossings)


CROSSINGS, ROADS = 4000, 80_000
torch.manual_seed(0)
sender, receiver = torch.randint(0, CROSSINGS, (2, ROADS))
net = TrafficNet(sensors=64, hours=12)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
history = torch.randn(30, CROSSINGS, 64)
for day in range(12):
    predicted = net(history[day], sender, receiver)
    loss = nn.functional.huber_loss(predicted, history[day + 1, :, :12])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
