# SPDX-License-Identifier: Apache-2.0
"""A line of JSON that is written and flushed for each step, with every parameter's norm in it."""

import json
import tempfile

import torch
from torch import nn

RULE = ("logging-in-step", "synchronising-calls")


def build(fixed):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    x = torch.randn(32, 64)
    log = tempfile.TemporaryFile("w")

    def step():
        loss = model(x).square().mean()
        loss.backward()
        if not fixed:
            for i in range(40):
                log.write(json.dumps({"layer": i, "values": list(range(100))}) + "\n")  # planted
                log.flush()  # planted
        model.zero_grad()

    return step
