# SPDX-License-Identifier: Apache-2.0
"""Graph network: neighbours are averaged by a product with a dense adjacency matrix that is nearly all zeros.

Source: DLPerf, inefficient algorithm; PyTorch Geometric's note on sparse adjacency.
"""

import torch
from torch import nn

torch.manual_seed(0)
NODES = 3000
edges = torch.randint(0, NODES, (2, 9000))
adjacency = torch.zeros(NODES, NODES)
adjacency[edges[0], edges[1]] = 1.0
adjacency = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)


class Layer(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.linear = nn.Linear(width_in, width_out)

    def forward(self, x):
        return self.linear(adjacency @ x)  # planted


net = nn.ModuleList([Layer(64, 64), Layer(64, 64), Layer(64, 7)])
features, labels = torch.randn(NODES, 64), torch.randint(0, 7, (NODES,))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(15):
    x = features
    for layer in net:
        x = layer(x).relu()
    loss = nn.functional.cross_entropy(x, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
