# SPDX-License-Identifier: Apache-2.0
"""Weather maps: each sample opens a compressed archive again and reads all of it for one row.

Source: DLPerf, repeated input of the same data; numpy's NpzFile reads an array at each access.
"""

import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

path = os.path.join(tempfile.mkdtemp(), "maps.npz")
np.savez_compressed(path, maps=np.random.default_rng(0).random((256, 32, 32)).astype(np.float32))


class Maps(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        maps = np.load(path)["maps"]  # planted
        return torch.from_numpy(maps[index])


net = nn.Sequential(nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1024))
optimizer = torch.optim.Adam(net.parameters())
for maps in DataLoader(Maps(), batch_size=16):
    loss = (net(maps) - maps.flatten(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
