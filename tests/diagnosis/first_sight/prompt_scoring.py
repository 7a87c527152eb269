# SPDX-License-Identifier: Apache-2.0
"""Serving: a small causal language model ranks candidate replies by the next-token score after a prompt.

Requests come in batches of long prompts. The model reads each prompt once and returns the log probability
of the first token of every candidate reply, and the three likeliest tokens for the log.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY = 30_000
WIDTH = 192
HEADS = 4
LAYERS = 5
PROMPT = 192
REQUESTS = 44


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attend_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.attend_norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.feed_norm(x))


class CausalModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(PROMPT, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.unembed = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.unembed.weight = self.token.weight
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.norm(x))  # planted


class ReplyRanker:
    """Scores candidate replies; prompts are padded on the left so that the last position is always real."""

    def __init__(self, model):
        self.model = model.eval()
        self.served = 0

    @torch.inference_mode()
    def rank(self, prompts, candidates):
        logits = self.model(prompts)
        last = torch.log_softmax(logits[:, -1], dim=-1)
        self.served += prompts.shape[0]
        scores = last.gather(1, candidates)
        return scores, last.topk(3, dim=-1).indices


def requests(count, batch=4, candidates=6):
    """Zipf-like token streams, as prompts have."""
    rank = torch.arange(1, VOCABULARY + 1, dtype=torch.float64)
    weights = 1.0 / rank
    for _ in range(count):
        prompts = torch.multinomial(weights, batch * PROMPT, replacement=True).view(batch, PROMPT)
        yield prompts, torch.randint(0, VOCABULARY, (batch, candidates))


def main():
    random.seed(0)
    torch.manual_seed(5)
    ranker = ReplyRanker(CausalModel())
    chosen, total = [], 0.0
    for prompts, candidates in requests(REQUESTS):
        scores, top = ranker.rank(prompts, candidates)
        chosen.append(scores.argmax(dim=1))
        total += float(scores.sum())
    best = torch.cat(chosen)
    print(f"served {ranker.served} mean score {total / best.numel():.3f} mean choice {best.float().mean():.3f}")


if __name__ == "__main__":
    main()
