# SPDX-License-Identifier: Apache-2.0
"""Keyword spotting: a small corpus is read by worker processes that are started again for each of its short epochs.

Source: merged open-mmlab/mmhuman3d pull request 233, Lightning's warning about persistent_workers.
"""

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Keywords(Dataset):
    def __init__(self, count=192):
        random = numpy.random.default_rng(0)
        self.waves = random.standard_normal((count, 8000), dtype=numpy.float32)
        self.labels = random.integers(0, 10, count)
        self.window = torch.hann_window(400)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        wave = torch.from_numpy(self.waves[index])
        power = torch.stft(wave, 400, 160, window=self.window, return_complex=True).abs()
        return torch.log(power + 1e-5), self.labels[index]


torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv1d(201, 96, 5, stride=2),
    nn.ReLU(),
    nn.Conv1d(96, 96, 5),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(96, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Keywords(), batch_size=48, shuffle=True, num_workers=2)  # planted
for epoch in range(8):
    for spectra, labels in loader:  # planted
        loss = nn.functional.cross_entropy(model(spectra), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
