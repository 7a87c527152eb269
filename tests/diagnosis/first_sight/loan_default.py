# SPDX-License-Identifier: Apache-2.0
"""Default risk of loans from many categorical and a few numerical columns."""

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

CARDINALITIES = [3 + (17 * i * i) % 60 for i in range(72)]
NUMERIC = 12


@dataclass
class Config:
    rows: int = 40_000
    batch: int = 256
    epochs: int = 4
    width: int = 8
    rate: float = 2e-3


def synth_loans(config, seed):
    rng = np.random.default_rng(seed)
    coded = np.stack([rng.integers(0, n, config.rows) for n in CARDINALITIES], 1)
    numeric = rng.standard_normal((config.rows, NUMERIC)).astype(np.float32)
    effect = [rng.standard_normal(n) * 0.3 for n in CARDINALITIES]
    risk = sum(e[coded[:, i]] for i, e in enumerate(effect)) + numeric @ rng.standard_normal(NUMERIC) * 0.5
    label = (rng.random(config.rows) < 1 / (1 + np.exp(1.2 - risk))).astype(np.float32)
    return torch.from_numpy(coded), torch.from_numpy(numeric), torch.from_numpy(label)


class CategoryVectors(nn.Module):
    """One vector per category of every column, side by side."""

    def __init__(self, sizes, width):
        super().__init__()
        self.columns = nn.ModuleList(nn.Embedding(n, width) for n in sizes)  # planted
        for column in self.columns:  # planted
            nn.init.normal_(column.weight, std=0.1)  # planted

    def forward(self, coded):
        return torch.cat([column(coded[:, i]) for i, column in enumerate(self.columns)], 1)  # planted


class RiskNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.categories = CategoryVectors(CARDINALITIES, config.width)
        inputs = len(CARDINALITIES) * config.width + NUMERIC
        self.body = nn.Sequential(nn.Linear(inputs, 192), nn.ReLU(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, coded, numeric):
        return self.body(torch.cat([self.categories(coded), numeric], 1)).squeeze(1)


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = RiskNet(config)
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), config.rate, fused=True)

    def epoch(self, coded, numeric, label):
        total = torch.zeros(())
        order = torch.randperm(len(label))
        for pick in order.split(self.config.batch):
            loss = self.loss(self.model(coded[pick], numeric[pick]), label[pick])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(pick)
        return total.item() / len(label)

    @torch.inference_mode()
    def brier(self, coded, numeric, label):
        parts = [torch.sigmoid(self.model(c, n)) for c, n in zip(coded.split(4096), numeric.split(4096))]
        return (torch.cat(parts) - label).square().mean().item()


def main():
    torch.manual_seed(11)
    config = Config()
    loans = synth_loans(config, 11)
    cut = int(0.9 * config.rows)
    training, held_out = [t[:cut] for t in loans], [t[cut:] for t in loans]
    trainer = Trainer(config)
    started = time.process_time()
    losses = [trainer.epoch(*training) for _ in range(config.epochs)]
    elapsed = time.process_time() - started
    print("loss", " ".join(f"{x:.4f}" for x in losses), f"brier {trainer.brier(*held_out):.4f}")
    print(f"loop {elapsed:.2f} s")


if __name__ == "__main__":
    main()
