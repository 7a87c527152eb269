# SPDX-License-Identifier: Apache-2.0
"""Radar sweeps are streamed by two workers: each decodes all sweeps and then drops those that are the other's.

Source: huggingface/datasets issue 6594 on how iterable datasets are split between workers, merged pull request 5655 on
needless decoding; PyTorch's documentation of IterableDataset.
"""

import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

BEAMS, GATES = 180, 512


def recorded(count, seed):
    generator = np.random.default_rng(seed)
    sweeps = []
    for _ in range(count):
        sweep = (generator.gamma(1.5, 6.0, (BEAMS, GATES)) * np.linspace(1, 0.2, GATES)).astype(np.uint8)
        sweeps.append(zlib.compress(sweep.tobytes(), 6))
    return sweeps


class Sweeps(IterableDataset):
    """An endless stream of decoded sweeps with the rain rate below each."""

    def __init__(self, stored):
        self.stored = stored

    def decoded(self):
        while True:
            for number, packed in enumerate(self.stored):
                raw = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(BEAMS, GATES)  # planted
                power = np.log1p(raw.astype(np.float32))  # planted
                smooth = np.apply_along_axis(np.convolve, 1, power, np.ones(8) / 8, "same")  # planted
                yield number, torch.from_numpy(smooth[:, ::4].astype(np.float32)), np.float32(raw.mean())

    def __iter__(self):
        worker = get_worker_info()
        for number, sweep, rain in self.decoded():
            if number % worker.num_workers == worker.id:
                yield sweep[None], rain


class RainNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 5, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, sweeps):
        return self.head(self.stem(sweeps).mean((2, 3))).squeeze(1)


def main(steps=24):
    torch.manual_seed(0)
    loader = DataLoader(Sweeps(recorded(96, 1)), batch_size=8, num_workers=2)
    net = RainNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    for step, (sweeps, rain) in enumerate(loader):
        if step == steps:
            break
        loss = nn.functional.l1_loss(net(sweeps), rain)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
