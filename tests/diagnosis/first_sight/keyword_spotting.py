# SPDX-License-Identifier: Apache-2.0
"""Audio: spotting of eight spoken commands in one-second clips. Commands are chirps with their own start and slope
in noise; a small network over the log spectrogram learns them. Prints loss and accuracy."""

import gc
import math
import resource

import torch
import torch.nn.functional as F
from torch import nn

RATE, COMMANDS, BATCH, STEPS = 8_000, 8, 64, 36


def make_clip(number, generator):
    """One clip with its notes, as the recording tool stores it."""
    command = number % COMMANDS
    time = torch.arange(RATE) / RATE
    start = 300 + 150 * command
    slope = 800 if command % 2 else -150
    offset = torch.rand(1, generator=generator).item()
    wave = torch.sin(2 * math.pi * (start * time + slope * time**2 / 2) + 6 * offset)
    wave = wave * torch.sigmoid((time - 0.2 * offset) * 60) + 0.3 * torch.randn(RATE, generator=generator)
    return {"wave": wave, "command": command, "notes": {"speaker": number % 17, "takes": [number, number + 1]}}


class MemoryWatch:
    """Callback of the training: keeps the memory of the process low and remembers the highest use."""

    def __init__(self):
        self.highest = 0

    def after_step(self):
        gc.collect()  # planted
        self.highest = max(self.highest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


class Spotter(nn.Module):
    def __init__(self, bins=129, width=192):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.body = nn.Sequential(
            nn.Conv1d(bins, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2, stride=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2, stride=2), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(width, COMMANDS)

    def forward(self, waves):
        spectrum = torch.stft(waves, 256, hop_length=128, window=self.window, return_complex=True)
        return self.head(self.body((spectrum.abs() + 1e-3).log()).mean(-1))


def train(model, clips, callbacks, generator):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses, hits = [], []
    for step in range(STEPS):
        chosen = [clips[i] for i in torch.randint(len(clips), (BATCH,), generator=generator).tolist()]
        waves = torch.stack([clip["wave"] for clip in chosen])
        commands = torch.tensor([clip["command"] for clip in chosen])
        logits = model(waves)
        loss = F.cross_entropy(logits, commands)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        hits.append((logits.argmax(1) == commands).float().mean().item())
        for callback in callbacks:
            callback.after_step()
    return losses, hits


def main():
    torch.manual_seed(110)
    generator = torch.Generator().manual_seed(111)
    clips = [make_clip(number, generator) for number in range(1200)]
    watch = MemoryWatch()
    losses, hits = train(Spotter(), clips, [watch], generator)
    assert watch.highest > 0
    print(f"loss {sum(losses[-10:]) / 10:.3f}, accuracy {sum(hits[-10:]) / 10:.2f}")


if __name__ == "__main__":
    main()
