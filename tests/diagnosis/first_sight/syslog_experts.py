# SPDX-License-Identifier: Apache-2.0
"""Next-event model for cluster system logs (switch transformer), used to score unusual sequences."""

import time

import torch
from torch import nn
from torch.nn import functional as F

N_EVENTS, WINDOW, BATCH, STEPS = 300, 64, 16, 90
WIDTH, HEADS, N_EXPERTS = 128, 4, 8


class ExpertLayer(nn.Module):
    """Feed-forward layer with one expert per token, chosen by a learned router."""

    def __init__(self, width, hidden, n_experts):
        super().__init__()
        self.router = nn.Linear(width, n_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)) for _ in range(n_experts)
        )

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        probs = self.router(tokens).softmax(dim=-1)
        weight, choice = probs.max(dim=-1)
        mixed = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            share = weight * (choice == index)
            mixed = mixed + share.unsqueeze(1) * expert(tokens)  # planted
        load = F.one_hot(choice, len(self.experts)).float().mean(dim=0)
        balance = len(self.experts) * (load * probs.mean(dim=0)).sum()
        return mixed.view_as(x), balance


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = ExpertLayer(WIDTH, 2 * WIDTH, N_EXPERTS)

    def forward(self, x):
        b, t, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, WIDTH))
        update, balance = self.feed(self.norm2(x))
        return x + update, balance


class EventModel(nn.Module):
    def __init__(self, n_layers=2):
        super().__init__()
        self.event = nn.Embedding(N_EVENTS, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(WINDOW, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(n_layers))
        self.head = nn.Linear(WIDTH, N_EVENTS)

    def forward(self, events):
        x = self.event(events) + self.position[: events.shape[1]]
        balance = 0.0
        for block in self.blocks:
            x, penalty = block(x)
            balance = balance + penalty
        return self.head(x), balance


def make_stream(length, generator):
    """Services emit events in noisy cycles; several services alternate."""
    service = torch.randint(12, (length // 20 + 1,), generator=generator).repeat_interleave(20)[:length]
    phase = torch.arange(length) % 25
    events = service * 25 + phase
    noise = torch.rand(length, generator=generator) < 0.05
    return torch.where(noise, torch.randint(N_EVENTS, (length,), generator=generator), events)


def windows(stream, generator):
    starts = torch.randint(len(stream) - WINDOW - 1, (BATCH,), generator=generator)
    piece = stream[starts[:, None] + torch.arange(WINDOW + 1)]
    return piece[:, :-1], piece[:, 1:]


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(9)
    stream = make_stream(200_000, generator)
    model = EventModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    started = time.perf_counter()
    for step in range(STEPS):
        events, following = windows(stream, generator)
        logits, balance = model(events)
        nll = F.cross_entropy(logits.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        (nll + 0.01 * balance).backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1:4d}  nll {nll.item():.4f}")
    elapsed = time.perf_counter() - started

    model.eval()
    with torch.inference_mode():
        events, following = windows(stream, generator)
        scores = F.cross_entropy(model(events)[0].transpose(1, 2), following, reduction="none").mean(1)
        shuffled = events[:, torch.randperm(WINDOW, generator=generator)]
        odd = F.cross_entropy(model(shuffled)[0].transpose(1, 2), following, reduction="none").mean(1)
    print(f"surprise of regular windows {scores.mean():.3f}, of shuffled ones {odd.mean():.3f}")
    print(f"{STEPS} steps in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
