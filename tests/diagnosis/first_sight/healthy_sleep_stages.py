# SPDX-License-Identifier: Apache-2.0
"""Sleep stages from a night of EEG: all spectra are made before training, which then reads them from memory.

Source: written for this set
"""

import math

import torch
from torch import nn

RATE = 100
EPOCH_SECONDS = 30
NIGHTS = 10
EPOCHS_A_NIGHT = 300
STAGES = 5
BANDS = 64
CONTEXT = 5
BATCH = 256
STEPS = 40


def record_night(generator):
    """Half-minute pieces of EEG with the rhythm of their stage."""
    stage = torch.randint(0, STAGES, (EPOCHS_A_NIGHT // 10,), generator=generator).repeat_interleave(10)
    time = torch.arange(EPOCH_SECONDS * RATE) / RATE
    rhythm = torch.tensor([20.0, 10.0, 5.0, 1.5, 7.0])[stage]
    rhythm = rhythm * (1 + 0.1 * torch.randn(len(stage), generator=generator))
    wave = torch.sin(2 * math.pi * rhythm[:, None] * time)
    noise = torch.randn(len(stage), len(time), generator=generator)
    return 0.6 * wave + noise, stage


def spectra(wave):
    """Log power in bands of half a hertz, averaged over the piece."""
    window = torch.hann_window(2 * RATE)
    parts = torch.stft(wave, 2 * RATE, RATE, window=window, return_complex=True)
    power = parts.real.square() + parts.imag.square()
    return power.mean(dim=-1)[:, :BANDS].clamp_min(1e-6).log()


def prepare(generator):
    """Spectra of all nights with those of the pieces around each."""
    rows, stages = [], []
    for _ in range(NIGHTS):
        wave, stage = record_night(generator)
        night = spectra(wave)
        night = (night - night.mean(dim=0)) / night.std(dim=0)
        padded = nn.functional.pad(night.T, (CONTEXT // 2, CONTEXT // 2), mode="replicate")
        rows.append(padded.unfold(1, CONTEXT, 1).transpose(0, 1).flatten(1))
        stages.append(stage)
    return torch.cat(rows), torch.cat(stages)


class StageNet(nn.Module):
    def __init__(self, width=800):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(BANDS * CONTEXT, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, STAGES),
        )

    def forward(self, rows):
        return self.net(rows)


def main():
    generator = torch.Generator().manual_seed(109)
    torch.manual_seed(109)
    rows, stages = prepare(generator)
    net = StageNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for step in range(STEPS):
        chosen = torch.randint(0, len(rows), (BATCH,), generator=generator)
        loss = nn.functional.cross_entropy(net(rows[chosen]), stages[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"sleep: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
