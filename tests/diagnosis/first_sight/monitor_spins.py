# SPDX-License-Identifier: Apache-2.0
"""Image classifier with a monitor: a thread polls for results without waiting, and holds the interpreter meanwhile.

Source: pytorch#101962 (a background thread holds the GIL and slows training), pytorch#18183.
"""

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
losses = queue.Queue()
finished = False
history = []


def monitor():
    while not finished:
        if not losses.empty():  # planted
            history.append(losses.get())


thread = threading.Thread(target=monitor, name="monitor")
thread.start()
model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(30)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    x = torch.randn(8, 32)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.put(loss.detach())
finished = True
thread.join()
