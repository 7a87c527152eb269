# SPDX-License-Identifier: Apache-2.0
"""A thread prepares the next batch, quicker than it is used."""

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
ready = queue.Queue(maxsize=3)


def produce():
    for _ in range(20):
        ready.put(torch.randn(64, 512))
    ready.put(None)


threading.Thread(target=produce, daemon=True).start()
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 512))
optimizer = torch.optim.AdamW(model.parameters())
while (x := ready.get()) is not None:
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
