# SPDX-License-Identifier: Apache-2.0
"""The same covariance is factored in each step, for other residuals."""

import torch
from torch import nn

RULE = "repeated-factorization"


def build(fixed):
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    samples = torch.randn(256, 512)
    covariance = samples @ samples.T / 512
    factors = torch.linalg.lu_factor(covariance)

    def step():
        residual = model(torch.randn(32, 16)).T
        if fixed:
            weighted = torch.linalg.lu_solve(*factors, residual)
        else:
            weighted = torch.linalg.solve(covariance, residual)  # planted
        loss = (residual * weighted).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
