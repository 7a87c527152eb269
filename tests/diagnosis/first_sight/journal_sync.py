# SPDX-License-Identifier: Apache-2.0
"""Federated client: a journal is forced to the disk in each step.

Source: DLPerf, synchronous input and output in the training loop.
"""

import json
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
journal = open(os.path.join(tempfile.mkdtemp(), "journal"), "w")
for step in range(60):
    x = torch.randn(32, 64)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    journal.write(json.dumps({"step": step, "weights": model.weight.tolist()}) + "\n")
    journal.flush()
    os.fsync(journal.fileno())  # planted
