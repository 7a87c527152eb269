# SPDX-License-Identifier: Apache-2.0
"""Speech, streaming: sixteen live channels are recognised chunk by chunk; the recurrent state and the last samples
of each channel are carried from chunk to chunk. Prints how many symbols came out and how sure they were."""

import math

import torch
from torch import nn

RATE, CHUNK, CHANNELS, SYMBOLS, CHUNKS = 8_000, 4_000, 16, 32, 200
WINDOW, HOP, MELS = 256, 80, 40


def mel_filters():
    """Triangles over the bins of the spectrum, made once."""
    bins = WINDOW // 2 + 1
    edges = torch.linspace(0, 2595 * math.log10(1 + RATE / 2 / 700), MELS + 2)
    edges = 700 * (10 ** (edges / 2595) - 1) / (RATE / 2) * (bins - 1)
    at = torch.arange(bins).float()
    rise = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rise, fall).clamp(min=0)


class StreamRecogniser(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW))
        self.register_buffer("mel", mel_filters())
        self.inside = nn.Linear(MELS, width)
        self.memory = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.out = nn.Linear(width, SYMBOLS)

    def forward(self, sound, state):
        spectrum = torch.stft(sound, WINDOW, HOP, window=self.window, center=False, return_complex=True)
        power = self.mel @ (spectrum.real**2 + spectrum.imag**2)
        hidden, state = self.memory(torch.relu(self.inside((power + 1e-5).log().transpose(1, 2))), state)
        return self.out(hidden).log_softmax(-1), state


class Captions:
    """Greedy reading of each channel: repeats and blanks (symbol 0) are dropped, across chunks too."""

    def __init__(self):
        self.last = torch.zeros(CHANNELS, dtype=torch.long)
        self.texts = [[] for _ in range(CHANNELS)]
        self.surety = []

    def add(self, scores):
        best, symbols = scores.max(-1)
        before = torch.cat([self.last[:, None], symbols[:, :-1]], 1)
        fresh = (symbols != before) & (symbols != 0)
        for text, row, keep in zip(self.texts, symbols.tolist(), fresh.tolist()):
            text.extend(symbol for symbol, new in zip(row, keep) if new)
        self.last = symbols[:, -1]
        self.surety.append(best.exp().mean().item())


class Microphones:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.tail = torch.zeros(CHANNELS, WINDOW - HOP)
        self.time = 0

    def next(self):
        at = (torch.arange(CHUNK) + self.time) / RATE
        self.time += CHUNK
        pitch = 200 + 600 * torch.rand(CHANNELS, 1, generator=self.generator)
        sound = torch.sin(2 * math.pi * pitch * at) + 0.3 * torch.randn(CHANNELS, CHUNK, generator=self.generator)
        whole = torch.cat([self.tail, sound], 1)
        self.tail = whole[:, -(WINDOW - HOP) :]
        return whole


def main():
    torch.manual_seed(270)
    model, captions, microphones = StreamRecogniser().eval(), Captions(), Microphones(271)
    state = None
    with torch.inference_mode():
        for chunk in range(CHUNKS):
            scores, state = model(microphones.next(), state)
            captions.add(scores)
    count = sum(len(text) for text in captions.texts)
    print(f"symbols {count}, mean surety {sum(captions.surety) / CHUNKS:.4f}")


if __name__ == "__main__":
    main()
