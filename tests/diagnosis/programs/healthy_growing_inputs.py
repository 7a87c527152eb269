# SPDX-License-Identifier: Apache-2.0
"""Batches of growing size, and a curriculum of growing length: nothing is computed twice."""

import torch
from torch import nn

RULE = None


def build(fixed):
    embed = nn.Embedding(500, 256)
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
    optimizer = torch.optim.AdamW([*embed.parameters(), *model.parameters()], fused=True)
    tokens = torch.randint(0, 500, (16, 80))

    def step():
        with torch.inference_mode():
            for count in range(4, 16):
                model(embed(tokens[:count]))
        for length in range(20, 80, 5):
            loss = model(embed(tokens[:, :length])).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return step
