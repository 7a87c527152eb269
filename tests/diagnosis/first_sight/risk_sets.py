# SPDX-License-Identifier: Apache-2.0
"""Survival of machines: sums over all who are still at risk are products with a triangular matrix of ones.

Source: Cox losses of havakv/pycox, which sort and use cumsum; earlier implementations keep the matrix of risk sets.
"""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Cohort:
    readings: torch.Tensor
    failed: torch.Tensor


class CoxLoss(nn.Module):
    def __init__(self, people: int):
        super().__init__()
        self.register_buffer("at_risk", torch.tril(torch.ones(people, people)))

    def forward(self, score, failed):
        total = self.at_risk @ score.exp()  # planted
        return ((total.log() - score) * failed).sum() / failed.sum()


def cohort(people: int) -> Cohort:
    return Cohort(torch.randn(people, 32), (torch.rand(people, 24) < 0.3).float())


torch.manual_seed(11)
people = 3000
network = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 24))
loss_of = CoxLoss(people)
optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
for epoch in range(15):
    batch = cohort(people)
    loss = loss_of(network(batch.readings), batch.failed)
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()
