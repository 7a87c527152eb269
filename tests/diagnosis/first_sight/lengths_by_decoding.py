# SPDX-License-Identifier: Apache-2.0
"""Spoken commands in buckets of like length: to sort them, every recording is read, resampled and analysed.

Source: https://github.com/s3prl/s3prl/issues/244, https://github.com/SeanNaren/deepspeech.pytorch/issues/143
"""

import pathlib
import random
import tempfile
import wave

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

torch.manual_seed(0)
random.seed(0)


def write_recordings(folder, count):
    for n in range(count):
        sound = (np.random.default_rng(n).standard_normal(random.randint(8000, 24_000)) * 3000).astype("<i2")
        with wave.open(str(folder / f"{n:04d}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes(sound.tobytes())


class Commands(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.wav"))
        self.window = torch.hann_window(400)

    def __len__(self):
        return len(self.paths)

    def read(self, n):
        with wave.open(str(self.paths[n]), "rb") as file:
            data = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
        return torch.from_numpy(data.astype("float32") / 32_768)

    def frames(self, n):
        """The number of frames, from the header."""
        with wave.open(str(self.paths[n]), "rb") as file:
            return file.getnframes() // 2 // 160 + 1

    def __getitem__(self, n):
        sound = nn.functional.interpolate(self.read(n)[None, None], scale_factor=0.5, mode="linear")[0, 0]
        spectrum = torch.stft(sound, 400, 160, window=self.window, return_complex=True).abs()
        return spectrum.T.log1p(), n % 10


class Buckets(Sampler):
    """Batches of recordings of like length, in random order."""

    def __init__(self, dataset, size):
        self.dataset, self.size = dataset, size

    def length(self, n):
        return len(self.dataset[n][0])  # planted

    def __len__(self):
        return -(-len(self.dataset) // self.size)

    def __iter__(self):
        order = sorted(range(len(self.dataset)), key=self.length)
        batches = [order[at : at + self.size] for at in range(0, len(order), self.size)]
        random.shuffle(batches)
        return iter(batches)


def collate(samples):
    spectra, labels = zip(*samples, strict=True)
    return nn.utils.rnn.pad_sequence(spectra, batch_first=True), torch.tensor(labels)


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(201, 32, 5, stride=2), nn.ReLU(), nn.Conv1d(32, 32, 5, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(32, 10)

    def forward(self, spectra):
        return self.head(self.layers(spectra.transpose(1, 2)).mean(2))


folder = pathlib.Path(tempfile.mkdtemp())
write_recordings(folder, 96)
dataset = Commands(folder)
loader = DataLoader(dataset, batch_sampler=Buckets(dataset, 16), collate_fn=collate)
model = Listener()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(5):
    for spectra, labels in loader:
        loss = nn.functional.cross_entropy(model(spectra), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
