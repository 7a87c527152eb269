# SPDX-License-Identifier: Apache-2.0
"""Keyword spotting on raw waveforms, made robust with simulated room acoustics."""

import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

RATE, LENGTH, WORDS, BATCH = 8000, 8000, 10, 24


def utterances(count):
    """Two formant tracks per keyword, with speaker pitch variation."""
    word = torch.randint(WORDS, (count,))
    t = torch.arange(LENGTH) / RATE
    first = (300 + 60 * word).unsqueeze(1) * (1 + 0.05 * torch.randn(count, 1))
    second = (1200 + 170 * word).unsqueeze(1) * (1 + 0.05 * torch.randn(count, 1))
    envelope = torch.exp(-((t - 0.5) ** 2) / 0.03)
    wave = torch.sin(2 * math.pi * first * t) + 0.6 * torch.sin(2 * math.pi * second * t)
    return envelope * wave + 0.02 * torch.randn(count, LENGTH), word


def room_responses(count, taps=2400):
    """Exponentially decaying noise tails with a direct path."""
    decay = 0.04 + 0.08 * torch.rand(count, 1)
    t = torch.arange(taps) / RATE
    tail = 0.15 * torch.randn(count, taps) * torch.exp(-t / decay)
    tail[:, 0] = 1.0
    return tail / tail.norm(dim=1, keepdim=True)


def in_room(wave, rooms):
    """Play each utterance through a randomly drawn room."""
    chosen = rooms[torch.randint(len(rooms), (len(wave),))]
    taps = chosen.flip(1).unsqueeze(1)  # planted
    padded = F.pad(wave, (chosen.shape[1] - 1, 0)).unsqueeze(0)  # planted
    return F.conv1d(padded, taps, groups=len(wave)).squeeze(0)  # planted


class WordNet(nn.Module):
    def __init__(self, ch=40):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, ch, 80, stride=16),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(ch, ch, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(ch, 2 * ch, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(2 * ch, 2 * ch, 3, padding=1),
            nn.ReLU(),
        )
        self.classify = nn.Linear(2 * ch, WORDS)

    def forward(self, wave):
        return self.classify(self.encoder(wave.unsqueeze(1)).amax(dim=-1))


def run_epoch(model, optimizer, waves, words, rooms):
    total, hits = torch.zeros(()), torch.zeros(())
    for rows in torch.randperm(len(waves)).split(BATCH):
        with torch.no_grad():
            heard = in_room(waves[rows], rooms)
            heard += 0.01 * torch.randn_like(heard)
        logits = model(heard)
        loss = F.cross_entropy(logits, words[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(rows)
        hits += (logits.detach().argmax(1) == words[rows]).sum()
    return total.item() / len(waves), hits.item() / len(waves)


def main():
    torch.manual_seed(17)
    waves, words = utterances(576)
    rooms = room_responses(200)
    model = WordNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(6):
        loss, accuracy = run_epoch(model, optimizer, waves, words, rooms)
        print(f"epoch {epoch}: loss {loss:.4f} accuracy {accuracy:.3f}")
    print(f"done in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
