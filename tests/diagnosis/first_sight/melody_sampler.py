# SPDX-License-Identifier: Apache-2.0
"""Samples melodies from a recurrent note model, one note at a time."""

import torch
from torch import nn

PITCHES, DURATIONS, HIDDEN = 128, 24, 512


class NoteModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.pitch = nn.Embedding(PITCHES, 96)
        self.duration = nn.Embedding(DURATIONS, 32)
        self.cells = nn.ModuleList([nn.LSTMCell(128, HIDDEN), nn.LSTMCell(HIDDEN, HIDDEN)])
        self.pitch_head = nn.Linear(HIDDEN, PITCHES)
        self.duration_head = nn.Linear(HIDDEN + 96, DURATIONS)

    def start(self, voices):
        return [(torch.zeros(voices, HIDDEN), torch.zeros(voices, HIDDEN)) for _ in self.cells]

    def advance(self, pitch, duration, memory):
        x = torch.cat([self.pitch(pitch), self.duration(duration)], dim=1)
        updated = []
        for cell, state in zip(self.cells, memory):
            state = cell(x, state)
            updated.append(state)
            x = state[0]
        return x, updated


def nucleus(logits, mass, temperature):
    """Draws from the smallest set of symbols whose probability reaches `mass`."""
    ordered, index = (logits / temperature).softmax(dim=1).sort(dim=1, descending=True)
    outside = ordered.cumsum(dim=1) - ordered > mass
    choice = torch.multinomial(ordered.masked_fill(outside, 0.0), 1)
    return index.gather(1, choice).squeeze(1)


@torch.inference_mode()
def compose(model, voices, notes, temperature=0.9):
    pitch = torch.full((voices,), 60)
    duration = torch.full((voices,), 4)
    memory = model.start(voices)
    score = torch.empty(notes, 2, voices, dtype=torch.long)
    for position in range(notes):
        hidden, memory = model.advance(pitch, duration, memory)
        # the duration depends on the pitch that was drawn, so the two draws cannot be merged
        pitch = nucleus(model.pitch_head(hidden), 0.95, temperature)
        duration = nucleus(model.duration_head(torch.cat([hidden, model.pitch(pitch)], dim=1)), 0.9, temperature)
        score[position, 0], score[position, 1] = pitch, duration
    return score


def describe(score):
    pitches, durations = score[:, 0].float(), score[:, 1].float()
    leaps = pitches.diff(dim=0).abs().mean()
    return f"mean leap {leaps.item():.2f} semitones, mean duration {durations.mean().item():.2f} ticks"


def main():
    torch.manual_seed(201)
    model = NoteModel().eval()
    for piece in range(10):
        score = compose(model, voices=96, notes=80)
        print(f"piece {piece}: {describe(score)}")


if __name__ == "__main__":
    main()
