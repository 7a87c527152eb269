# SPDX-License-Identifier: Apache-2.0
"""Trains on the hardest quarter of candidates, which a pass without gradients finds: both passes are needed."""

import torch
from torch import nn

KINDS, CANDIDATES, KEPT = 20, 64, 16


class Parts(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.GroupNorm(8, width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(8, 2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, KINDS)

    def forward(self, pictures):
        return self.head(self.layers(pictures).mean((2, 3)))


@torch.no_grad()
def hardest(model, pictures, kinds):
    losses = nn.functional.cross_entropy(model(pictures), kinds, reduction="none")
    return losses.topk(KEPT).indices


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    seen = torch.zeros(())
    for pictures, kinds in batches:
        chosen = hardest(model, pictures, kinds)
        loss = nn.functional.cross_entropy(model(pictures[chosen]), kinds[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.detach()
    return seen.item()


def candidates(count):
    for _ in range(count):
        yield torch.rand(CANDIDATES, 3, 64, 64), torch.randint(KINDS, (CANDIDATES,))


torch.manual_seed(0)
train(Parts(), candidates(25))
