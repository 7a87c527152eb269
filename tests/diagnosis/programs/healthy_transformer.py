# SPDX-License-Identifier: Apache-2.0
"""A transformer encoder, trained with a fused optimizer."""

import torch
from torch import nn

RULE = None


def build(fixed):
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 3), nn.Linear(128, 1000))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    total = torch.zeros(())

    def step():
        x = torch.randint(0, 1000, (8, 64))
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total.add_(loss.detach())

    return step
