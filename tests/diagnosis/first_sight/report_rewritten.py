# SPDX-License-Identifier: Apache-2.0
"""Battery ageing: the report of all steps so far is written again after each step.

Source: DLPerf, inefficient logging; a line that is added each time holds the same.
"""

import json
import pathlib
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
folder = pathlib.Path(tempfile.mkdtemp())
cells = [{"cell": n, "history": [round(n * k / 7, 6) for k in range(40)]} for n in range(200)]
report = {"cells": cells, "losses": []}
model = nn.Sequential(nn.Linear(32, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(25):
    cycles, health = torch.randn(128, 32), torch.rand(128, 1)
    loss = nn.functional.mse_loss(model(cycles), health)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report["losses"].append(step)
    with (folder / "report.json").open("w") as file:
        json.dump(report, file)  # planted
