# SPDX-License-Identifier: Apache-2.0
"""Language model of words: gradients are filled with zeros instead of let go, and added to after.

Source: PyTorch performance tuning guide, "Use parameter.grad = None instead of model.zero_grad()".
"""

import torch
from torch import nn

torch.manual_seed(0)
layers = nn.ModuleList([nn.Linear(1200, 1200) for _ in range(8)])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(4, 1200)
    for layer in layers:
        x = layer(x).relu()
    optimizer.zero_grad(set_to_none=False)  # planted
    x.mean().backward()
    optimizer.step()
