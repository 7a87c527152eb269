# SPDX-License-Identifier: Apache-2.0
"""Generative text: a small decoder learns the grammar of synthetic recipes (verb, amount, ingredient, then a
dish made of what was used) and writes the rest of recipes that users have begun. Prints how sure it was."""

import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, LAYERS, LIMIT = 96, 128, 4, 3, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, past):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat([past[0], k], 2)
            v = torch.cat([past[1], v], 2)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, DIM))
        return x + self.mlp(self.norm2(x)), (k, v)


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.places = nn.Embedding(LIMIT, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, ids, past=None):
        start = 0 if past is None else past[0][0].size(2)
        x = self.words(ids) + self.places(torch.arange(start, start + ids.size(1)))
        present = []
        for number, block in enumerate(self.blocks):
            x, kv = block(x, None if past is None else past[number])
            present.append(kv)
        return self.norm(x) @ self.words.weight.t() / math.sqrt(DIM), present


def recipes(count, length, generator):
    """Tokens follow each other by rule: verb 0-15, amount 16-31, ingredient 32-95 that depends on both."""
    ids = torch.zeros(count, length, dtype=torch.long)
    verb = torch.randint(16, (count,), generator=generator)
    for at in range(0, length - 2, 3):
        amount = (3 * verb + at) % 16
        ids[:, at], ids[:, at + 1], ids[:, at + 2] = verb, 16 + amount, 32 + (5 * verb + 7 * amount) % 64
        surprise = torch.randint(16, (count,), generator=generator)
        verb = torch.where(torch.rand(count, generator=generator) < 0.1, surprise, (verb + amount) % 16)
    return ids


def train(model, generator, rounds=25):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(rounds):
        ids = recipes(24, 60, generator)
        logits, _ = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def complete(model, ids, count):
    """Greedy continuation: the most probable word each time."""
    past, surety = None, 0.0
    for _ in range(count):
        logits, past = model(ids)  # planted
        chance = logits[:, -1].softmax(-1)
        best, word = chance.max(-1, keepdim=True)
        surety += best.mean().item()
        ids = torch.cat([ids, word], 1)
    return ids, surety / count


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = Writer()
    loss = train(model, generator)
    model.eval()
    sureties = []
    for request in range(22):
        begun = recipes(4, 30, generator)
        written, surety = complete(model, begun, 46)
        assert written.shape == (4, 76)
        sureties.append(surety)
    print(f"training loss {loss:.3f}, mean surety {sum(sureties) / len(sureties):.3f}")


if __name__ == "__main__":
    main()
