# SPDX-License-Identifier: Apache-2.0
"""Audio data pipeline: features of podcast episodes are extracted once and stored segment by segment.

A frozen convolutional encoder turns an episode into frame features, speech activity picks the segments
worth keeping, and every segment goes to its own file together with its pooled embedding. At the end the
files are read back to build the index that a search service would load.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(41)

RATE = 8000
MINUTE = 60 * RATE
EPISODES = 20
SEGMENT = 400  # frames


def synthesise_episode():
    """A minute of voiced bursts with pauses over quiet noise."""
    t = torch.arange(MINUTE) / RATE
    pitch = 110 + 40 * torch.rand(()).item()
    voice = sum(torch.sin(2 * torch.pi * pitch * k * t) / k for k in range(1, 5))
    gate = (torch.sin(2 * torch.pi * t / 7 + 6 * torch.rand(())) > -0.6).float()
    return (voice * gate + 0.05 * torch.randn(MINUTE)).view(1, 1, -1)


class FrameEncoder(nn.Module):
    """Strided convolutions, 100 frames a second, frozen weights."""

    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 64, 20, stride=10),
            nn.GELU(),
            nn.Conv1d(64, 192, 8, stride=4, padding=2),
            nn.GELU(),
            nn.Conv1d(192, width, 4, stride=2, padding=1),
            nn.GELU(),
        )
        for parameter in self.parameters():
            parameter.requires_grad_(False)

    @torch.inference_mode()
    def forward(self, wave):
        return self.layers(wave).squeeze(0).T.contiguous()


def active_segments(frames, energy):
    """Start frames of the segments with enough speech in them."""
    keep = []
    threshold = energy.mean() * 0.5
    for start in range(0, frames.shape[0] - SEGMENT, SEGMENT):
        if (energy[start : start + SEGMENT] > threshold).float().mean() > 0.3:
            keep.append(start)
    return keep


class ShardWriter:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.names = []

    def add(self, episode, start, features, embedding):
        name = self.folder / f"e{episode:03d}_{start:05d}.pt"
        torch.save({"features": features, "embedding": embedding, "start": start}, name)
        self.names.append(name)


def export(folder):
    encoder = FrameEncoder().eval()
    pool = nn.Linear(256, 64)
    writer = ShardWriter(folder)
    for episode in range(EPISODES):
        frames = encoder(synthesise_episode())
        energy = frames.square().mean(dim=1)
        for start in active_segments(frames, energy):
            segment = frames[start : start + SEGMENT]  # planted
            with torch.no_grad():
                embedding = nn.functional.normalize(pool(segment.mean(dim=0)), dim=0)
            writer.add(episode, start, segment, embedding)
    return writer.names


def index_of(names):
    """Stack of the embeddings of some shards and their mean pairwise similarity."""
    rows = []
    for name in names[:: max(1, len(names) // 24)]:
        shard = torch.load(name, map_location="cpu")
        assert shard["features"].shape == (SEGMENT, 256)
        rows.append(shard["embedding"])
    table = torch.stack(rows)
    similarity = table @ table.T
    off = similarity.sum() - similarity.diagonal().sum()
    return table, off / (len(rows) * (len(rows) - 1))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        names = export(folder)
        table, similarity = index_of(names)
    print(f"segments {len(names)} indexed {table.shape[0]} similarity {similarity.item():.4f}")
