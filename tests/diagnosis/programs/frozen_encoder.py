# SPDX-License-Identifier: Apache-2.0
"""A classifier on a frozen encoder, which computes the features of the same documents in each epoch."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

RULE = "frozen-part"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, 64)
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64))

    def forward(self, tokens):
        return self.layers(self.words(tokens)).mean(1)


def build(fixed):
    encoder = Encoder().eval().requires_grad_(False)
    head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(head.parameters(), fused=True)
    documents, labels = torch.randint(1000, (256, 32)), torch.randint(4, (256,))
    features = encoder(documents)

    def step():
        chosen = torch.randperm(256)[:64]
        if fixed:
            x = features[chosen]
        else:
            with torch.no_grad():
                x = encoder(documents[chosen])  # planted
        loss = cross_entropy(head(x), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
