# SPDX-License-Identifier: Apache-2.0
"""A table read from its file each step."""

import csv
import tempfile

import torch
from torch import nn

RULE = "python-in-step"


def load(path):
    with open(path) as file:
        return torch.tensor([[float(v) for v in row] for row in csv.reader(file)])  # planted


def build(fixed):
    file = tempfile.NamedTemporaryFile("w")
    csv.writer(file).writerows([[i * j / 7 for j in range(32)] for i in range(128)])
    file.flush()
    model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 1))
    data = load(file.name)

    def step():
        x = data if fixed else load(file.name)  # planted
        model(x).square().mean().backward()
        model.zero_grad()

    return step
