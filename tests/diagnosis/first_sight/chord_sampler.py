# SPDX-License-Identifier: Apache-2.0
"""Samples chord progressions: transformer decoder with a preallocated cache, nucleus sampling."""

import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, START = 512, 256, 8, 0


class CachedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def allocate(self, batch, length):
        self.cache = torch.empty(2, batch, HEADS, length, WIDTH // HEADS)

    def forward(self, x, position):
        qkv = self.qkv(x).view(len(x), 3, HEADS, 1, WIDTH // HEADS)
        self.cache[0, :, :, position : position + 1] = qkv[:, 1]
        self.cache[1, :, :, position : position + 1] = qkv[:, 2]
        keys, values = self.cache[:, :, :, : position + 1]
        mixed = F.scaled_dot_product_attention(qkv[:, 0], keys, values)
        return self.out(mixed.flatten(1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = CachedAttention()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, position):
        x = x + self.attn(self.norm1(x), position)
        return x + self.ff(self.norm2(x))


class ChordModel(nn.Module):
    def __init__(self, depth=4, max_length=160):
        super().__init__()
        self.chord = nn.Embedding(VOCAB, WIDTH)
        self.bar = nn.Embedding(max_length, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB)

    def forward(self, token, position):
        x = self.chord(token) + self.bar.weight[position]
        for block in self.blocks:
            x = block(x, position)
        return self.head(self.norm(x))


def nucleus(logits, p, temperature):
    """Keep the smallest set of chords whose mass reaches p, then draw one."""
    ordered, index = (logits / temperature).sort(dim=-1, descending=True)
    mass = ordered.softmax(dim=-1)
    beyond = mass.cumsum(dim=-1) - mass >= p
    drawn = torch.multinomial(mass.masked_fill_(beyond, 0.0), 1)
    return index.gather(1, drawn).squeeze(1)


def repetition_penalty(logits, counts, strength):
    return logits - strength * counts.clamp_max(4)


@torch.inference_mode()
def sample(model, batch, length, p=0.92, temperature=0.9, strength=0.5):
    for block in model.blocks:
        block.attn.allocate(batch, length)
    token = torch.full((batch,), START)
    counts = torch.zeros(batch, VOCAB)
    song = torch.empty(batch, length, dtype=torch.long)
    one = torch.ones(batch, 1)
    for position in range(length):
        logits = repetition_penalty(model(token, position), counts, strength)
        token = nucleus(logits, p, temperature)
        counts.scatter_add_(1, token.unsqueeze(1), one)
        song[:, position] = token
        yield token
    yield song


def variety(song):
    """Mean number of different chords per song."""
    ordered = song.sort(dim=1).values
    return 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(dim=1).float().mean().item()


def main(n_batches=10, batch=32, length=128):
    torch.manual_seed(0)
    model = ChordModel().eval()
    varieties, latencies = [], []
    start = time.perf_counter()
    for _ in range(n_batches):
        began = time.perf_counter()
        for emitted in sample(model, batch, length):
            pass
        varieties.append(variety(emitted))
        latencies.append(time.perf_counter() - began)
    elapsed = time.perf_counter() - start
    print(f"{n_batches * batch * length / elapsed:.0f} chords/s, loop {elapsed:.2f}s")
    print(f"slowest batch {max(latencies):.2f}s, variety {sum(varieties) / len(varieties):.1f}")


if __name__ == "__main__":
    main()
