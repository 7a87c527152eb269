# SPDX-License-Identifier: Apache-2.0
"""Records the trace next to this file: a small training loop with faults that advice finds.

Run in this folder, with one thread: python -c "exec(compile(open('train.py').read(), 'train.py', 'exec'))"
"""

import gzip
import pathlib
import sysconfig

import torch
from torch import nn

import opstrobe


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8 * 16 * 16, 10)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))


class Noise(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(3, 16, 16, generator=generator), i % 10


def train(steps):
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    loader = torch.utils.data.DataLoader(Noise(), batch_size=8)
    seen = []
    with opstrobe.profile(
        activities=[opstrobe.ProfilerActivity.CPU],
        schedule=opstrobe.schedule(wait=0, warmup=2, active=3, repeat=1),
        with_stack=True,
        with_modules=True,
        record_shapes=True,
        profile_memory=True,
    ) as profile:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append([value.item() for value in loss.detach().repeat(20)])
            profile.step()
            if len(seen) == steps:
                break
    return profile


if __name__ == "__main__":
    torch.set_num_threads(1)
    trace = pathlib.Path("train.pt.trace.json.gz")
    train(5).export_chrome_trace(str(trace))
    # Where the recording machine keeps its packages is nobody's business.
    text = gzip.decompress(trace.read_bytes())
    packages = [str(pathlib.Path(package.__file__).parents[1]) for package in (torch, opstrobe)]
    for folder in [*packages, sysconfig.get_paths()["stdlib"]]:
        text = text.replace(folder.encode() + b"/", b"")
    trace.write_bytes(gzip.compress(text, 9, mtime=0))
