# SPDX-License-Identifier: Apache-2.0
"""Emergency calls to text: the best label of each frame is read out of the tensor one by one.

Source: https://github.com/pytorch/audio/pull/1558, https://github.com/k2-fsa/icefall/pull/1691
"""

import math
import zlib

import torch
from torch import nn

ALPHABET = ["_", "|", "'"] + [chr(code) for code in range(ord("a"), ord("z") + 1)]
BLANK = 0
MELS = 64
FRAMES = 480
CALLS = 12
BATCHES = 16


class ConvBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(1, width)
        self.deep = nn.Conv1d(width, width, 9, padding=4, groups=width)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, sound):
        return sound + self.mix(torch.relu(self.deep(self.norm(sound))))


class CallEncoder(nn.Module):
    """Mel frames to label scores at half the frame rate."""

    def __init__(self, width=96, blocks=3):
        super().__init__()
        self.enter = nn.Conv1d(MELS, width, 5, stride=2, padding=2)
        self.blocks = nn.Sequential(*[ConvBlock(width) for _ in range(blocks)])
        self.scores = nn.Conv1d(width, len(ALPHABET), 1)

    def forward(self, mels):
        return self.scores(self.blocks(torch.relu(self.enter(mels)))).transpose(1, 2)


def ring_in(generator):
    """One batch of calls: drifting formants under line noise."""
    frame = torch.arange(FRAMES)
    centre = 20 + 14 * torch.sin(frame / 23.0 + 6.3 * torch.rand(CALLS, 1, generator=generator))
    mel = torch.arange(MELS)[None, :, None]
    voice = torch.exp(-((mel - centre[:, None]) ** 2) / 18.0)
    return 2.0 * voice + 0.5 * torch.randn(CALLS, MELS, FRAMES, generator=generator)


def transcribe(scores):
    """Greedy CTC: repeated labels are merged, blanks fall away."""
    best = scores.argmax(dim=-1)
    lines = []
    for labels in best:  # planted
        previous = BLANK
        letters = []
        for label in labels:
            if label != previous and label != BLANK:
                letters.append(ALPHABET[label])
            previous = label
        lines.append("".join(letters).replace("|", " "))
    return lines


def urgency(scores):
    """How sure the model is over a call, for the order of the queue."""
    top = scores.log_softmax(dim=-1).amax(dim=-1)
    return top.mean(dim=1) / math.log(len(ALPHABET))


def main():
    generator = torch.Generator().manual_seed(8)
    torch.manual_seed(8)
    encoder = CallEncoder().eval()
    log = []
    sure = 0.0
    with torch.inference_mode():
        for batch in range(BATCHES):
            mels = ring_in(generator)
            scores = encoder(mels)
            certain = urgency(scores)
            order = certain.argsort()
            sure += certain.sum().item()
            lines = transcribe(scores)
            log.extend(lines[place] for place in order.tolist())
    print(f"calls: {len(log)} lines, sum {zlib.crc32(' '.join(log).encode())}, sure {sure:.5f}")


if __name__ == "__main__":
    main()
