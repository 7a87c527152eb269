# SPDX-License-Identifier: Apache-2.0
"""Operations: an autoencoder over tokenised server log lines finds unusual requests.

Log lines are rendered from templates, hashed into a fixed number of token ids and padded. The model
embeds the tokens, squeezes the line into a small code and predicts its words back; the lines with the
largest loss are the suspicious ones.
"""

import random
import zlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS, LENGTH, LINES = 1024, 160, 12288
BATCH = 192

TEMPLATES = [
    "GET /api/v{v}/users/{n} status {s} in {n} ms from rack {r} zone {z}",
    "POST /api/v{v}/orders size {n} bytes status {s} queue {z} depth {n}",
    "cache miss key item:{n} shard {r} latency {n} us retry {v} of 5",
    "disk {r} temperature {n} spare {n} percent zone {z} firmware {v}.{n}",
]
UNUSUAL = "kernel panic at address {n} stack {n} {n} {n} unknown opcode {s} core {r}"


def render(rng):
    unusual = rng.random() < 0.01
    template = UNUSUAL if unusual else rng.choice(TEMPLATES)
    pieces = []
    for _ in range(8):
        values = dict(
            v=rng.randint(1, 3),
            n=rng.randint(0, 999),
            s=rng.choice([200, 404, 500]),
            r=rng.randint(1, 40),
            z=rng.choice("abc"),
        )
        pieces.append(template.format(**values))
    return " ; ".join(pieces), unusual


def tokenise(line):
    """Stable hash of every word; 0 is padding."""
    ids = [1 + zlib.crc32(word.encode()) % (WORDS - 1) for word in line.split()][:LENGTH]
    return ids + [0] * (LENGTH - len(ids))


class LogLines(Dataset):
    def __init__(self, seed):
        rng = random.Random(seed)
        rendered = [render(rng) for _ in range(LINES)]
        self.tokens = [tokenise(line) for line, _ in rendered]
        self.unusual = [unusual for _, unusual in rendered]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        line = self.tokens[index]
        return {
            "tokens": line,  # planted
            "mask": [float(token != 0) for token in line],  # planted
            "unusual": self.unusual[index],
        }


class LineCoder(nn.Module):
    """Embeds every position, squeezes the line and predicts which words it holds."""

    def __init__(self, width=16, code=64):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width, padding_idx=0)
        self.squeeze = nn.Sequential(nn.Linear(LENGTH * width, 256), nn.GELU(), nn.Linear(256, code))
        self.widen = nn.Sequential(nn.Linear(code, 256), nn.GELU(), nn.Linear(256, WORDS))

    def forward(self, tokens):
        return self.widen(self.squeeze(self.embed(tokens).flatten(1)))


def batch_tensor(value):
    """The loader gives a tensor, or a list with one tensor per position."""
    return value if torch.is_tensor(value) else torch.stack(value, dim=1)


def train(dataset):
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True)
    model = LineCoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scores, flags = [], []
    for batch in loader:
        tokens = batch_tensor(batch["tokens"])
        mask = batch_tensor(batch["mask"]).float()
        logits = model(tokens)
        present = torch.zeros_like(logits).scatter_(1, tokens, mask)
        line = F.binary_cross_entropy_with_logits(logits, present, reduction="none").sum(1)
        optimizer.zero_grad()
        line.mean().backward()
        optimizer.step()
        scores.append(line.detach())
        flags.append(batch["unusual"])
    return scores, torch.cat(flags)


if __name__ == "__main__":
    torch.manual_seed(14)
    scores, flags = train(LogLines(seed=5))
    print(f"loss {scores[0].mean():.3f} to {scores[-1].mean():.3f} unusual lines {int(flags.sum())}")
