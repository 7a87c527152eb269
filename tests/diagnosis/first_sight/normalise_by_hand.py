# SPDX-License-Identifier: Apache-2.0
"""Seismic traces: normalisation over the last dimension is written out in single operators.

Source: PyTorch tuning guide (fuse operations); torch.nn.functional.layer_norm does it in one pass.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Normalise(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)  # planted
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)  # planted
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.scale + self.shift  # planted


layers = []
for _ in range(4):
    layers += [nn.Linear(256, 256), Normalise(256), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(15):
    traces, arrival = torch.randn(2048, 256), torch.randn(2048, 1)
    loss = nn.functional.smooth_l1_loss(model(traces), arrival)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
