# SPDX-License-Identifier: Apache-2.0
"""Recommender with a background writer: training waits for a lock that the writer holds while it writes a file.

Source: DLPerf, lock contention in data and checkpoint threads; PyTorch's asynchronous checkpoints stage copies instead.
"""

import os
import tempfile
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
lock = threading.Lock()
stop = threading.Event()
folder = tempfile.mkdtemp()


def writer():
    while not stop.is_set():
        with lock:
            torch.save(model.state_dict(), os.path.join(folder, "latest.pt"))
            time.sleep(0.03)  # a slow remote file system
        time.sleep(0.002)


thread = threading.Thread(target=writer, name="checkpoint")
thread.start()
for step in range(40):
    x = torch.randn(128, 256)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    with lock:  # planted
        optimizer.step()
stop.set()
thread.join()
