# SPDX-License-Identifier: Apache-2.0
"""Tabular regression: histograms of all weights and gradients are made and logged in each step.

Source: Lightning and wandb issues on watch(log="all") in each step; DLPerf, superfluous logging.
"""

import io
import json

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(200, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))
optimizer = torch.optim.Adam(model.parameters())
log = io.StringIO()


def watch(step):
    for name, parameter in model.named_parameters():
        for what in (parameter.detach(), parameter.grad):
            counts, edges = np.histogram(what.numpy(), bins=64)  # planted
            log.write(json.dumps({"step": step, "name": name, "counts": counts.tolist(), "edges": edges.tolist()}))


for step in range(25):
    x = torch.randn(64, 200)
    loss = (model(x).squeeze(1) - x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    watch(step)
    optimizer.step()
