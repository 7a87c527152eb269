# SPDX-License-Identifier: Apache-2.0
"""Adapting a frozen text encoder to ticket routing with low-rank adapters."""

import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, DEPTH, HEADS, LENGTH, TEAMS = 5000, 384, 3, 6, 24, 8


class AdaptedLinear(nn.Module):
    def __init__(self, inputs, outputs, rank=8, alpha=16.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / math.sqrt(inputs), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(outputs), requires_grad=False)
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return F.linear(x, self.weight + self.scale * (self.up @ self.down), self.bias)  # planted


class EncoderBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_a = nn.LayerNorm(WIDTH).requires_grad_(False)
        self.norm_b = nn.LayerNorm(WIDTH).requires_grad_(False)
        self.qkv = AdaptedLinear(WIDTH, 3 * WIDTH)
        self.out = AdaptedLinear(WIDTH, WIDTH)
        self.widen = AdaptedLinear(WIDTH, 4 * WIDTH)
        self.narrow = AdaptedLinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, WIDTH)
        x = x + self.out(mixed)
        return x + self.narrow(F.gelu(self.widen(self.norm_b(x))))


class TicketRouter(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH).requires_grad_(False)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH), requires_grad=False)
        self.blocks = nn.Sequential(*[EncoderBlock() for _ in range(DEPTH)])
        self.route = nn.Linear(WIDTH, TEAMS)

    def forward(self, tokens):
        return self.route(self.blocks(self.embed(tokens) + self.place).mean(dim=1))


def tickets(count):
    """Each team has its own favourite slice of the vocabulary."""
    team = torch.randint(TEAMS, (count,))
    own = team.unsqueeze(1) * 100 + torch.randint(100, (count, LENGTH))
    common = torch.randint(VOCAB, (count, LENGTH))
    return torch.where(torch.rand(count, LENGTH) < 0.3, own, common), team


def main():
    torch.manual_seed(12)
    text, team = tickets(320)
    model = TicketRouter()
    tuned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(tuned, lr=2e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(3):
        total = torch.zeros(())
        for rows in torch.randperm(len(text)).split(8):
            loss = F.cross_entropy(model(text[rows]), team[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(rows)
        print(f"epoch {epoch}: loss {total.item() / len(text):.5f}")
    print(f"adapted {sum(p.numel() for p in tuned)} weights in {time.perf_counter() - start:.1f} s")
    model.eval()
    with torch.inference_mode():
        hits = (model(text[:128]).argmax(1) == team[:128]).float().mean()
    print(f"accuracy {hits.item():.3f}")


if __name__ == "__main__":
    main()
