# SPDX-License-Identifier: Apache-2.0
"""Audio: a small enhancement network learns to undo the tail of a feedback comb reverberator.

Dry clips are short percussive hits followed by silence. The room is a bank of feedback combs and a
one-pole damper, run block by block with their state; the network sees the wet log magnitudes of a clip and
predicts a mask for the dry ones.
"""

import torch
from torch import nn

torch.manual_seed(3)

RATE = 16000
BLOCK = 64
CLIP = 320 * BLOCK
CHANNELS = 16
STEPS = 11


def drum_hits(count):
    """Decaying noise bursts in the first fifth of the clip, then digital silence."""
    t = torch.arange(CLIP) / RATE
    clips = torch.zeros(count, CLIP)
    for row in clips:
        start = int(torch.randint(0, RATE // 8, ()))
        length = int(torch.randint(RATE // 16, RATE // 5, ()))
        decay = torch.exp(-t[:length] * float(torch.empty(()).uniform_(30, 60)))
        row[start : start + length] = torch.randn(length) * decay
    return clips


class CombRoom:
    """A feedback delay network: every block of a channel is mixed with the others and fed back."""

    def __init__(self, channels):
        mix, _ = torch.linalg.qr(torch.randn(channels, channels))
        self.mix = mix * 0.60
        self.inject = torch.randn(channels, 1) * 0.3
        self.collect = torch.randn(1, channels) * 0.3
        self.channels = channels

    def __call__(self, clips):
        """(count, samples) to (count, samples), block by block."""
        count = clips.shape[0]
        state = torch.zeros(self.channels, count * BLOCK)
        wet = []
        for block in clips.split(BLOCK, dim=1):
            drive = self.inject @ block.reshape(1, -1)
            state = self.mix @ state + drive
            wet.append((self.collect @ state).view(count, BLOCK))
        return torch.cat(wet, dim=1)


class MaskNet(nn.Module):
    def __init__(self, bins=257, width=512):
        super().__init__()
        self.encode = nn.Linear(bins, width)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.mask = nn.Linear(width, bins)

    def forward(self, magnitude):
        h = torch.relu(self.encode(torch.log1p(magnitude)))
        h, _ = self.memory(h)
        return torch.sigmoid(self.mask(h))


WINDOW = torch.hann_window(512)


def magnitude(clips):
    spectrum = torch.stft(clips, 512, 256, window=WINDOW, return_complex=True)
    return spectrum.abs().transpose(1, 2)


def train():
    room = CombRoom(CHANNELS)
    net = MaskNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    losses = []
    for step in range(STEPS):
        dry = drum_hits(8)
        wet = room(dry)  # planted
        target, seen = magnitude(dry), magnitude(dry + wet)
        estimate = net(seen) * seen
        loss = (torch.log1p(estimate) - torch.log1p(target)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    history = train()
    print(f"first {history[0]:.4f} last {history[-1]:.4f}")
