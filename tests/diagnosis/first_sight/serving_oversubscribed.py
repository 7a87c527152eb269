# SPDX-License-Identifier: Apache-2.0
"""Serving: several request threads, each of which runs operators on a team of eight threads.

Source: PyTorch's CPU threading notes; huggingface and Triton issues on oversubscription (triton server#6896).
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(8)  # planted
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).eval()


def answer(request):
    with torch.inference_mode():
        x = torch.randn(64, 256)
        for _ in range(10):
            y = model(x)
        return y.argmax(1)


with ThreadPoolExecutor(4) as pool:
    for result in pool.map(answer, range(60)):
        pass
