# SPDX-License-Identifier: Apache-2.0
"""Messages along edges, summed by index_add."""

import torch
from torch import nn

torch.manual_seed(0)
source, target = torch.randint(0, 3000, (2, 30000))
features, labels = torch.randn(3000, 64), torch.randint(0, 5, (3000,))
first, second = nn.Linear(64, 64), nn.Linear(64, 5)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])


def gather(x):
    return torch.zeros_like(x).index_add(0, target, x[source])


for epoch in range(15):
    loss = nn.functional.cross_entropy(second(gather(first(features).relu())), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
