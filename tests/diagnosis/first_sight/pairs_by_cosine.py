# SPDX-License-Identifier: Apache-2.0
"""Contrastive learning: similarities of all pairs come from cosine_similarity on broadcast operands.

Source: the NT-Xent loss of sthalles/SimCLR (issue 19); merged pull request 66 of JaxGCRL replaces the same with a product.
"""

import torch
from torch import nn
from torch.nn import functional


class NTXent(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def similarity(self, views):
        return functional.cosine_similarity(views.unsqueeze(1), views.unsqueeze(0), dim=2)  # planted

    def forward(self, first, second):
        views = torch.cat([first, second])
        count = len(first)
        scores = self.similarity(views) / self.temperature
        scores = scores.masked_fill(torch.eye(2 * count, dtype=torch.bool), float("-inf"))
        partner = torch.cat([torch.arange(count) + count, torch.arange(count)])
        return functional.cross_entropy(scores, partner)


torch.manual_seed(0)
encoder = nn.Sequential(
    nn.Conv2d(3, 32, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 128),
)
criterion = NTXent()
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
for step in range(20):
    images = torch.rand(96, 3, 32, 32)
    first = images + 0.1 * torch.randn_like(images)
    second = torch.flip(images, dims=[3])
    loss = criterion(encoder(first), encoder(second))
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()
