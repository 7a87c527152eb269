# SPDX-License-Identifier: Apache-2.0
"""Masked-token pretraining on k-mer tokenised sequences."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 8004  # all 20^3 amino-acid triples plus specials
    mask_id: int = 8001
    length: int = 64
    width: int = 128
    heads: int = 4
    layers: int = 2
    batch: int = 16
    steps: int = 32
    mask_rate: float = 0.15


class KmerEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.width)
        self.positions = nn.Parameter(torch.randn(cfg.length, cfg.width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            cfg.width, cfg.heads, 4 * cfg.width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(cfg.width)
        self.transform = nn.Sequential(nn.Linear(cfg.width, cfg.width), nn.GELU(), nn.LayerNorm(cfg.width))
        self.decoder = nn.Linear(cfg.width, cfg.vocab)

    def encode(self, tokens):
        return self.norm(self.body(self.tokens(tokens) + self.positions))

    def predict(self, hidden):
        return self.decoder(self.transform(hidden))


class Pretrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rng = torch.Generator().manual_seed(21)
        self.model = KmerEncoder(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-4, fused=True)
        weights = 1.0 / torch.arange(1, 8001).float()
        self.proteins = torch.multinomial(weights, 512 * cfg.length, replacement=True, generator=self.rng).view(
            512, cfg.length
        )

    def corrupt(self, tokens):
        selected = torch.rand(tokens.shape, generator=self.rng) < self.cfg.mask_rate
        labels = tokens.masked_fill(~selected, -100)
        return tokens.masked_fill(selected, self.cfg.mask_id), labels

    def step(self, tokens):
        corrupted, labels = self.corrupt(tokens)
        hidden = self.model.encode(corrupted)
        logits = self.model.predict(hidden)  # planted
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)  # planted
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def run(self):
        history = []
        for step in range(self.cfg.steps):
            rows = torch.randint(0, len(self.proteins), (self.cfg.batch,), generator=self.rng)
            history.append(self.step(self.proteins[rows]))
            if (step + 1) % 8 == 0:
                print(f"step {step + 1:3d}  loss {torch.stack(history[-8:]).mean().item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(4)
    Pretrainer(Config()).run()
