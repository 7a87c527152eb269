# SPDX-License-Identifier: Apache-2.0
"""Recognises spoken commands: each clip is searched by name among all members of a tar archive.

Source: merged VIDA-NYU/reprozip pull request 195 (lookups in a tar scan a list), PyFilesystem/pyfilesystem2 issue 275.
"""

import io
import os
import tarfile
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

CLIPS, SAMPLES = 6000, 4000


def write_archive(path):
    generator = np.random.default_rng(0)
    with tarfile.open(path, "w") as archive:
        for clip in range(CLIPS):
            sound = generator.integers(-2000, 2000, SAMPLES, dtype=np.int16).tobytes()
            member = tarfile.TarInfo(f"commands/{clip % 20:02}/{clip:06}.raw")
            member.size = len(sound)
            archive.addfile(member, io.BytesIO(sound))


class Commands(Dataset):
    def __init__(self, path):
        self.archive = tarfile.open(path)
        self.names = self.archive.getnames()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, clip):
        name = self.names[clip]
        member = self.archive.getmember(name)  # planted
        sound = self.archive.extractfile(member).read()
        wave = torch.frombuffer(bytearray(sound), dtype=torch.int16).float() / 32768
        return wave[None], int(name.split("/")[1])


class Recogniser(nn.Module):
    def __init__(self, channels=24, commands=20):
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv1d(1, channels, 80, stride=16),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(channels, 2 * channels, 3),
            nn.BatchNorm1d(2 * channels),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(2 * channels, commands),
        )

    def forward(self, waves):
        return self.network(waves)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "commands.tar")
    write_archive(path)
    torch.manual_seed(0)
    commands = Commands(path)
    loader = DataLoader(commands, batch_size=64, sampler=RandomSampler(commands, num_samples=64 * 30))
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for waves, labels in loader:
        loss = nn.functional.cross_entropy(model(waves), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
