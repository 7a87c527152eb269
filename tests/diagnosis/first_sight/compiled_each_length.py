# SPDX-License-Identifier: Apache-2.0
"""Forecasts demand from histories of many lengths: the model is compiled again for each length.

Source: PyTorch's manual of torch.compile (recompilation, dynamic shapes), pytorch/pytorch issue 132849.
"""

import torch
from torch import nn

torch._dynamo.config.recompile_limit = 64


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.spread = nn.LayerNorm(width), nn.Conv1d(width, width, 5, padding=4, groups=width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def forward(self, x):
        past = self.spread(self.norm(x).transpose(1, 2))[..., : x.shape[1]]
        x = x + past.transpose(1, 2)
        return x + self.feed(self.norm(x))


class Forecaster(nn.Module):
    def __init__(self, width=96, ahead=14):
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.layers = nn.ModuleList(Mixer(width) for _ in range(2))
        self.leave = nn.Linear(width, ahead)

    def forward(self, history):
        x = self.enter(history)
        for layer in self.layers:
            x = layer(x)
        return self.leave(x.mean(1))


def histories(count, shops=48):
    for length in torch.randperm(120)[:count].tolist():
        yield torch.rand(shops, 90 + length, 3), torch.rand(shops, 14)


torch.manual_seed(0)
model = Forecaster()
compiled = torch.compile(model, backend="aot_eager", dynamic=False)  # planted
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for history, demand in histories(10):
    loss = nn.functional.huber_loss(compiled(history), demand)  # planted
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
