# SPDX-License-Identifier: Apache-2.0
"""Finding promoter elements in DNA with local self-attention."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(41)

LENGTH, REACH = 2048, 32
WIDTH, HEADS, LAYERS = 64, 4, 2
BATCH, STEPS = 2, 24
MOTIF = torch.tensor([3, 0, 3, 0, 0, 3, 0, 1])


def sequences(generator):
    """Random DNA with a handful of inserted motifs, labelled per base."""
    bases = torch.randint(0, 4, (BATCH, LENGTH), generator=generator)
    label = torch.zeros(BATCH, LENGTH)
    for row in range(BATCH):
        for start in torch.randint(0, LENGTH - len(MOTIF), (30,), generator=generator).tolist():
            bases[row, start : start + len(MOTIF)] = MOTIF
            label[row, start : start + len(MOTIF)] = 1
    return bases, label


def near(query_positions, key_positions):
    distance = (query_positions[:, None] - key_positions[None, :]).abs()
    return (distance <= REACH) & (key_positions >= 0) & (key_positions < LENGTH)


class LocalAttention(nn.Module):
    """Every base attends to the bases at most REACH positions away."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        position = torch.arange(LENGTH)
        self.register_buffer("allowed", near(position, position))  # planted

    def forward(self, x):
        batch = len(x)
        q, k, v = self.project(x).view(batch, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.allowed)  # planted
        return self.out(mixed.transpose(1, 2).reshape(batch, LENGTH, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = LocalAttention()
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class PromoterScanner(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Embedding(4, WIDTH)
        self.local = nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, bases):
        x = self.local(self.base(bases).transpose(1, 2)).transpose(1, 2)
        return self.head(self.layers(x)).squeeze(-1)


def main():
    generator = torch.Generator().manual_seed(1)
    model = PromoterScanner()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    positive_weight = torch.tensor(6.0)
    begun = time.perf_counter()
    for step in range(1, STEPS + 1):
        bases, label = sequences(generator)
        loss = F.binary_cross_entropy_with_logits(model(bases), label, pos_weight=positive_weight)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 6 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    print(f"{STEPS} steps in {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
