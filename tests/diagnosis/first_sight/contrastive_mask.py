# SPDX-License-Identifier: Apache-2.0
"""Contrastive learning: the mask of positive pairs is filled pair by pair in each step.

Source: Spijkervet/SimCLR, mask_correlated_samples, made once after a fix; DLPerf, repeated initialisation.
"""

import torch
from torch import nn

torch.manual_seed(0)


def mask_pairs(batch):
    mask = torch.ones(2 * batch, 2 * batch, dtype=torch.bool)
    mask.fill_diagonal_(False)
    for i in range(batch):
        mask[i, batch + i] = False  # planted
        mask[batch + i, i] = False  # planted
    return mask


class Loss(nn.Module):
    def forward(self, a, b):
        n = len(a)
        z = nn.functional.normalize(torch.cat([a, b]), dim=1)
        similar = z @ z.T / 0.5
        mask = mask_pairs(n)
        positive = torch.cat([similar.diagonal(n), similar.diagonal(-n)])[:, None]
        negative = similar[mask].reshape(2 * n, -1)
        return nn.functional.cross_entropy(torch.cat([positive, negative], 1), torch.zeros(2 * n, dtype=torch.long))


encoder = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = torch.optim.Adam(encoder.parameters())
criterion = Loss()
for step in range(15):
    x = torch.randn(256, 128)
    loss = criterion(encoder(x + 0.1 * torch.randn_like(x)), encoder(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
