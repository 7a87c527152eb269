# SPDX-License-Identifier: Apache-2.0
"""Rhythm classification of single-lead ECG strips with a patch transformer."""

import torch
import torch.nn.functional as F
from torch import nn

RATE, SECONDS, PATCH, RHYTHMS = 125, 24, 8, 4
PATCHES = RATE * SECONDS // PATCH


class EncoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        normed = self.norm1(x)
        mixed, _ = self.attention(normed, normed, normed)  # planted
        x = x + mixed
        return x + self.feed(self.norm2(x))


class RhythmNet(nn.Module):
    def __init__(self, width=64, heads=8, depth=2):
        super().__init__()
        self.patches = nn.Conv1d(1, width, PATCH, stride=PATCH)
        self.positions = nn.Parameter(0.02 * torch.randn(PATCHES, width))
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads) for _ in range(depth)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, RHYTHMS))

    def forward(self, strip):
        tokens = self.patches(strip.unsqueeze(1)).transpose(1, 2) + self.positions
        return self.head(self.blocks(tokens).mean(dim=1))


def strips(count, generator):
    """Spiky beats whose rate and regularity depend on the rhythm."""
    rhythm = torch.randint(0, RHYTHMS, (count,), generator=generator)
    t = torch.arange(RATE * SECONDS) / RATE
    rate = torch.tensor([1.0, 1.8, 0.6, 1.3])[rhythm].unsqueeze(1)
    irregular = torch.tensor([0.02, 0.02, 0.02, 0.4])[rhythm].unsqueeze(1)
    wander = irregular * torch.sin(6.2832 * 0.31 * t + 6.2832 * torch.rand(count, 1, generator=generator))
    phase = rate * t + wander + torch.rand(count, 1, generator=generator)
    beat = torch.exp(-200 * ((phase % 1) - 0.5) ** 2)
    return beat + 0.1 * torch.randn(count, len(t), generator=generator), rhythm


class Session:
    def __init__(self):
        self.generator = torch.Generator().manual_seed(121)
        self.strips, self.rhythm = strips(512, self.generator)
        self.model = RhythmNet()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)

    def minibatches(self, size, count):
        for _ in range(count):
            rows = torch.randint(0, len(self.strips), (size,), generator=self.generator)
            yield self.strips[rows], self.rhythm[rows]

    def train(self, steps):
        self.model.train()
        recent = torch.zeros(())
        for step, (strip, rhythm) in enumerate(self.minibatches(8, steps), start=1):
            loss = F.cross_entropy(self.model(strip), rhythm)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            recent += loss.detach()
            if step % 10 == 0:
                print(f"step {step:3d}: loss {recent.item() / 10:.4f}")
                recent.zero_()


if __name__ == "__main__":
    torch.manual_seed(120)
    Session().train(steps=30)
