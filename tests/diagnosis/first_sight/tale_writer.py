# SPDX-License-Identifier: Apache-2.0
"""Sampling short tales from a decoder with a key/value cache and early stopping."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, DEPTH, HEADS, LIMIT, STOP = 6000, 384, 4, 6, 176, 0


class CachedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_a, self.ln_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.back = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, keys, values, at):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln_a(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        keys[:, :, at : at + t] = k
        values[:, :, at : at + t] = v
        past_k, past_v = keys[:, :, : at + t], values[:, :, : at + t]
        mixed = F.scaled_dot_product_attention(q, past_k, past_v, is_causal=t > 1)
        x = x + self.mix(mixed.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.back(F.gelu(self.wide(self.ln_b(x))))


class TaleModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(LIMIT, WIDTH))
        self.blocks = nn.ModuleList(CachedBlock() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def make_cache(self, batch):
        shape = (batch, HEADS, LIMIT, WIDTH // HEADS)
        return [(torch.empty(shape), torch.empty(shape)) for _ in self.blocks]

    def forward(self, tokens, cache, at):
        x = self.words(tokens) + self.places[at : at + tokens.shape[1]]
        for block, (keys, values) in zip(self.blocks, cache):
            x = block(x, keys, values, at)
        return self.head(self.norm(x[:, -1]))


def draw(logits, keep=40, temperature=0.9):
    best, index = logits.topk(keep)
    choice = torch.multinomial(F.softmax(best / temperature, dim=-1), 1)
    return index.gather(1, choice)


@torch.inference_mode()
def write(model, opening):
    batch, prompt = opening.shape
    cache = model.make_cache(batch)
    text = torch.full((batch, LIMIT), STOP)
    text[:, :prompt] = opening
    logits = model(opening, cache, 0)
    alive = torch.ones(batch, 1, dtype=torch.bool)
    at = prompt
    while at < LIMIT:
        token = torch.where(alive, draw(logits), STOP)
        text[:, at : at + 1] = token
        alive &= token != STOP
        if not alive.any():
            break
        logits = model(token, cache, at)
        at += 1
    return text, at - prompt


def main():
    torch.manual_seed(14)
    model = TaleModel().eval()
    openings = torch.randint(1, VOCAB, (8, 10, 48))
    written = 0
    start = time.perf_counter()
    for number, opening in enumerate(openings):
        text, length = write(model, opening)
        written += int((text != STOP).sum()) - opening.numel()
        print(f"batch {number}: {length} steps, signature {int(text.sum())}")
    elapsed = time.perf_counter() - start
    print(f"{written} words, {written / elapsed:.0f} words/s, {elapsed:.1f} s")


if __name__ == "__main__":
    main()
