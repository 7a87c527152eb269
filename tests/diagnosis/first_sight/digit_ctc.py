# SPDX-License-Identifier: Apache-2.0
"""Speech: spoken digit strings are recognised by an attention encoder with the CTC loss.

Digits are chords of two formant-like tones; a string of them with pauses is turned into log mel bands,
masked in time and frequency as augmentation, and read by the encoder. Every tenth step the best path is
decoded and compared with the spoken digits.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(67)

RATE, SECONDS, BANDS, HOP = 8000, 2, 64, 80
DIGITS, BATCH, STEPS = 5, 24, 20
TONES = torch.stack([300 + 70 * torch.arange(10.0), 1000 + 230 * torch.arange(10.0).roll(3)], dim=1)


def mel_filters():
    """(bins, BANDS) triangles, equally spaced on the mel scale."""
    mel = torch.linspace(0, 2595 * torch.log10(torch.tensor(1 + RATE / 2 / 700)).item(), BANDS + 2)
    edge = 700 * (10 ** (mel / 2595) - 1)
    bins = torch.linspace(0, RATE / 2, 129).unsqueeze(1)
    rise = (bins - edge[:-2]) / (edge[1:-1] - edge[:-2])
    fall = (edge[2:] - bins) / (edge[2:] - edge[1:-1])
    return torch.minimum(rise, fall).clamp(min=0)


FILTERS, WINDOW = mel_filters(), torch.hann_window(256)
CLOCK = torch.arange(RATE * SECONDS // DIGITS) / RATE


def speak(count):
    digits = torch.randint(0, 10, (count, DIGITS))
    pitch = TONES[digits] * (1 + 0.03 * torch.randn(count, DIGITS, 1))
    wave = torch.sin(2 * torch.pi * pitch.unsqueeze(-1) * CLOCK).sum(dim=2)
    length = 0.5 + 0.3 * torch.rand(count, DIGITS, 1)
    wave = wave * (CLOCK / CLOCK[-1] < length)
    return (wave.flatten(1) + 0.1 * torch.randn(count, CLOCK.numel() * DIGITS)), digits


def log_mel(wave):
    power = torch.stft(wave, 256, HOP, window=WINDOW, return_complex=True).abs().square()
    return torch.log(power.transpose(1, 2) @ FILTERS + 1e-3)


def augment(features):
    """One masked span in time and one in frequency per batch."""
    features = features.clone()
    t, b = int(torch.randint(0, features.shape[1] - 12, ())), int(torch.randint(0, BANDS - 6, ()))
    features[:, t : t + int(torch.randint(1, 12, ()))] = 0
    features[:, :, b : b + int(torch.randint(1, 6, ()))] = 0
    return features


class Recogniser(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.enter = nn.Linear(2 * BANDS, width)
        self.position = nn.Parameter(0.02 * torch.randn(101, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.leave = nn.Linear(width, 11)

    def forward(self, features):
        pairs = features[:, : features.shape[1] // 2 * 2].unflatten(1, (-1, 2)).flatten(2)
        hidden = self.encoder(self.enter(pairs) + self.position[: pairs.shape[1]])
        return F.log_softmax(self.leave(hidden), dim=-1)


def best_path(log_probability):
    """Collapse repeats, drop blanks (class 0)."""
    for row in log_probability.argmax(dim=-1).tolist():
        yield [k - 1 for k, before in zip(row, [0] + row) if k != before and k != 0]


def train():
    model = Recogniser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lengths = torch.full((BATCH,), DIGITS)
    for step in range(STEPS):
        wave, digits = speak(BATCH)
        log_probability = model(augment(log_mel(wave)))
        frames = torch.full((BATCH,), log_probability.shape[1])
        loss = F.ctc_loss(log_probability.transpose(0, 1), digits + 1, frames, lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 9:
            exact = sum(path == truth for path, truth in zip(best_path(log_probability), digits.tolist()))
            print(f"step {step} loss {loss.item():.3f} exact {exact}")
    return loss.item()


if __name__ == "__main__":
    print(f"loss {train():.3f}")
