# SPDX-License-Identifier: Apache-2.0
"""Serving by two threads whose operators run on one thread each."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).eval()


@torch.inference_mode()
def answer(_):
    return model(torch.randn(128, 512)).argmax(1)


with ThreadPoolExecutor(2) as pool:
    list(pool.map(answer, range(60)))
