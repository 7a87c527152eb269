# SPDX-License-Identifier: Apache-2.0
"""Domain adaptation with optimal transport: Sinkhorn's scaling tests its convergence after each iteration.

Source: PythonOT/POT, whose sinkhorn_knopp computes the violation of the marginals in every tenth iteration only.
"""

import torch
from torch import nn


@torch.no_grad()
def transport_plan(cost, strength=0.1, tolerance=1e-6, limit=60):
    """Entropic transport between two uniform distributions."""
    rows, columns = cost.shape
    a = torch.full((rows,), 1 / rows)
    b = torch.full((columns,), 1 / columns)
    kernel = torch.exp(-cost / strength)
    u, v = torch.ones(rows), torch.ones(columns)
    for iteration in range(limit):
        u = a / (kernel @ v)
        v = b / (u @ kernel)
        marginal = (u[:, None] * kernel * v[None, :]).sum(1)  # planted
        if (marginal - a).abs().sum().item() < tolerance:  # planted
            break
    return u[:, None] * kernel * v[None, :]


class Adapted(nn.Module):
    def __init__(self, inputs=128, width=256, classes=12):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64)
        )
        self.classify = nn.Linear(64, classes)

    def forward(self, samples):
        features = self.features(samples)
        return features, self.classify(features)


torch.manual_seed(0)
model = Adapted()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
SAMPLES = 900
for step in range(14):
    source, labels = torch.randn(SAMPLES, 128), torch.randint(0, 12, (SAMPLES,))
    target = torch.randn(SAMPLES, 128) + 0.5
    known, scores = model(source)
    unknown, _ = model(target)
    cost = torch.cdist(known, unknown)
    plan = transport_plan(cost.detach() / cost.detach().max())
    loss = nn.functional.cross_entropy(scores, labels) + 0.1 * (plan * cost).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
