# SPDX-License-Identifier: Apache-2.0
"""Gaussian process: a covariance is inverted to multiply one vector.

Source: torch.linalg.inv's documentation, "prefer torch.linalg.solve"; GPyTorch's use of Cholesky factors.
"""

import torch

torch.manual_seed(0)
x = torch.rand(600, 4)
y = torch.sin(x.sum(1) * 3)
length = torch.tensor(0.5, requires_grad=True)
noise = torch.tensor(0.1, requires_grad=True)
optimizer = torch.optim.Adam([length, noise], lr=0.05)
for iteration in range(15):
    covariance = torch.exp(-torch.cdist(x, x).square() / (2 * length**2)) + noise.exp() * torch.eye(600)
    weights = torch.linalg.inv(covariance) @ y  # planted
    loss = 0.5 * y @ weights + 0.5 * torch.logdet(covariance)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
