# SPDX-License-Identifier: Apache-2.0
"""Genomics: a transformer over DNA bases finds whether a stretch of 512 bases holds a promoter, that is the motif
TATAAA followed by CCAAT at the right distance. Prints the loss at the end of the training."""

import math

import torch
import torch.nn.functional as F
from torch import nn

LENGTH, DIM, HEADS, LAYERS = 512, 64, 4, 2
BASES = {"A": 0, "C": 1, "G": 2, "T": 3}


def motif(text):
    return torch.tensor([BASES[letter] for letter in text])


def stretches(count, generator):
    """Random bases; half of the stretches get the two motifs at 30 to 60 bases of distance."""
    dna = torch.randint(4, (count, LENGTH), generator=generator)
    label = torch.arange(count) % 2
    for row in torch.nonzero(label).flatten().tolist():
        for _ in range(6):
            at = int(torch.randint(LENGTH - 80, (1,), generator=generator))
            gap = int(torch.randint(30, 60, (1,), generator=generator))
            dna[row, at : at + 6] = motif("TATAAA")
            dna[row, at + gap : at + gap + 5] = motif("CCAAT")
    return dna, label.float()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(DIM, DIM) for _ in range(3))
        self.out = nn.Linear(DIM, DIM)

    def heads(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, HEADS, DIM // HEADS).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)  # planted
        mixed = torch.softmax(scores, dim=-1) @ v  # planted
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PromoterFinder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bases = nn.Embedding(4, DIM)
        self.local = nn.Conv1d(DIM, DIM, 9, padding=4)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.head = nn.Linear(DIM, 1)

    def forward(self, dna):
        x = F.gelu(self.local(self.bases(dna).transpose(1, 2))).transpose(1, 2)
        return self.head(self.blocks(x).amax(1)).squeeze(-1)


def main(steps=28, batch=6):
    torch.manual_seed(100)
    generator = torch.Generator().manual_seed(101)
    model = PromoterFinder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    losses = []
    for step in range(steps):
        dna, label = stretches(batch, generator)
        loss = F.binary_cross_entropy_with_logits(model(dna), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"loss {sum(losses[:5]) / 5:.3f} at the start, {sum(losses[-8:]) / 8:.3f} at the end")


if __name__ == "__main__":
    main()
