# SPDX-License-Identifier: Apache-2.0
"""A model that waits for its data: reading an image takes 2 ms, and a batch has 32 of them.

opstrobe run --advise -o slow.json.gz examples/slow_loader.py
opstrobe advise slow.json.gz
opstrobe run --advise -o fast.json.gz examples/slow_loader.py --workers 6
opstrobe diff slow.json.gz fast.json.gz
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--workers", type=int, default=0, help="processes that make batches (default: %(default)s)")
options = parser.parse_args()


class Images(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        time.sleep(0.002)  # reads and decodes a file
        return torch.randn(3, 32, 32), index % 10


model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 30 * 30, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Images(), batch_size=32, num_workers=options.workers, persistent_workers=options.workers > 0)

for images, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
