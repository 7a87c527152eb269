# SPDX-License-Identifier: Apache-2.0
"""Signs of the hand from short clips: the file is opened for each frame, so that all frames before it are decoded again.

Source: https://github.com/danoli3/FreeImage/pull/89, https://github.com/groundlight/framegrab/pull/95
"""

import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


def record_clips(folder, count, frames=36, size=96):
    """Clips of a bright patch that moves over a noisy ground."""
    for n in range(count):
        rng = np.random.default_rng(n)
        ground = rng.integers(0, 80, (size, size), dtype=np.uint8)
        pictures = []
        for t in range(frames):
            picture = ground + rng.integers(0, 20, (size, size), dtype=np.uint8)
            x, y = int(40 + 30 * np.sin(t / 5 + n)), int(40 + 30 * np.cos(t / (4 + n % 8)))
            picture[y : y + 16, x : x + 16] = 240
            pictures.append(Image.fromarray(picture))
        pictures[0].save(folder / f"{n:03d}.gif", save_all=True, append_images=pictures[1:])


class Signs(Dataset):
    def __init__(self, folder, frames=36, sampled=6):
        self.paths = sorted(folder.glob("*.gif"))
        self.moments = torch.linspace(2, frames - 1, sampled).long().tolist()

    def __len__(self):
        return len(self.paths)

    def clip(self, path):
        frames = []
        for moment in self.moments:
            with Image.open(path) as clip:
                clip.seek(moment)  # planted
                frames.append(np.asarray(clip.convert("L")))
        return frames

    def __getitem__(self, n):
        frames = torch.from_numpy(np.stack(self.clip(self.paths[n])))
        return frames.float() / 255 - 0.5, n % 8


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.frames = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, stride=2), nn.ReLU()
        )
        self.time = nn.GRU(2 * width, 64, batch_first=True)
        self.head = nn.Linear(64, 8)

    def forward(self, clips):
        features = self.frames(clips.flatten(0, 1).unsqueeze(1)).mean((2, 3))
        _, last = self.time(features.view(*clips.shape[:2], -1))
        return self.head(last[0])


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    record_clips(folder, 32)
    loader = DataLoader(Signs(folder), batch_size=4)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for clips, signs in loader:
            loss = nn.functional.cross_entropy(model(clips), signs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.4f}")
