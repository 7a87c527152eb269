# SPDX-License-Identifier: Apache-2.0
"""Video: one thread decodes frames and hands clips over by a queue; the training loop waits for it.

Source: PyTorch tuning guide, asynchronous data loading; DLPerf, slow input pipeline.
"""

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
clips = queue.Queue(maxsize=2)


def decode(seed):
    frame = bytearray(6000)
    value = seed
    for i in range(len(frame)):  # planted
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF  # planted
        frame[i] = value & 255  # planted
    return torch.frombuffer(frame, dtype=torch.uint8).float() / 255


def producer():
    for clip in range(20):
        clips.put(torch.stack([decode(clip * 8 + f) for f in range(8)]))
    clips.put(None)


threading.Thread(target=producer, name="decoder", daemon=True).start()
model = nn.Sequential(nn.Linear(6000, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while (clip := clips.get()) is not None:  # planted
    loss = model(clip).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
