# SPDX-License-Identifier: Apache-2.0
"""A recurrent decoder that learns from given words, with its vocabulary in the loop over time."""

import torch
from torch import nn

RULE = "layer-in-loop"


def build(fixed):
    cell, vocabulary = nn.GRUCell(64, 128), nn.Linear(128, 6000)
    words = torch.randn(20, 12, 64)
    targets = torch.randint(0, 6000, (20, 12))

    def decode():
        h, hidden, logits = torch.zeros(12, 128), [], []
        for word in words:
            h = cell(word, h)
            if fixed:
                hidden.append(h)
            else:
                logits.append(vocabulary(h))  # planted
        return vocabulary(torch.stack(hidden)) if fixed else torch.stack(logits)

    def step():
        cell.zero_grad()
        vocabulary.zero_grad()
        nn.functional.cross_entropy(decode().flatten(0, 1), targets.flatten()).backward()

    return step
