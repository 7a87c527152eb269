# SPDX-License-Identifier: Apache-2.0
"""Batch service that proposes the next word for half-typed support replies."""

import queue
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, DEPTH, HEADS, CONTEXT = 12000, 256, 4, 8, 80


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.ln2(x))


class ReplyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.places[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # planted


class SuggestionService:
    def __init__(self, model, max_batch=8):
        self.model = model.eval()
        self.max_batch = max_batch
        self.inbox = queue.Queue()

    def submit(self, ticket, tokens):
        self.inbox.put((ticket, tokens))

    def next_batch(self):
        batch = []
        while len(batch) < self.max_batch and not self.inbox.empty():
            batch.append(self.inbox.get())
        return batch

    @torch.inference_mode()
    def answer(self, batch, choices=3):
        tickets, prompts = zip(*batch)
        logits = self.model(torch.stack(prompts))[:, -1]
        prob, word = F.softmax(logits, dim=-1).topk(choices)
        return list(zip(tickets, word.tolist(), prob.tolist()))


def main():
    torch.manual_seed(21)
    service = SuggestionService(ReplyModel())
    traffic = torch.randint(VOCAB, (560, CONTEXT))
    for ticket, prompt in enumerate(traffic):
        service.submit(ticket, prompt)

    answered, checksum = 0, 0
    start = time.perf_counter()
    while batch := service.next_batch():
        for ticket, words, _ in service.answer(batch):
            answered += 1
            checksum += ticket * words[0]
    elapsed = time.perf_counter() - start
    print(f"{answered} suggestions, checksum {checksum}, {answered / elapsed:.1f}/s, {elapsed:.1f} s")


if __name__ == "__main__":
    main()
