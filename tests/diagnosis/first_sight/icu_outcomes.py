# SPDX-License-Identifier: Apache-2.0
"""Shared-trunk network that predicts several intensive-care outcomes from one admission record."""

import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

TASKS = {
    "mortality": "binary",
    "ventilation": "binary",
    "sepsis": "binary",
    "stay_days": "regression",
    "lactate_next": "regression",
    "discharge_ward": "classes",
}
WARD_CLASSES = 8


@dataclass
class Config:
    features: int = 180
    width: int = 384
    depth: int = 3
    batch: int = 256
    rows: int = 20_000
    epochs: int = 4
    lr: float = 1e-3


def simulate_records(cfg, generator):
    x = torch.randn(cfg.rows, cfg.features, generator=generator)
    hidden = torch.tanh(x @ torch.randn(cfg.features, 12, generator=generator) / cfg.features**0.5)
    targets = {}
    for name, kind in TASKS.items():
        signal = hidden @ torch.randn(12, WARD_CLASSES, generator=generator)
        if kind == "binary":
            targets[name] = (signal[:, 0] > 0.5).float()
        elif kind == "regression":
            targets[name] = signal[:, 0] + 0.1 * torch.randn(cfg.rows, generator=generator)
        else:
            targets[name] = signal.argmax(1)
    return x, targets


class OutcomeModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        layers, width = [], cfg.features
        for _ in range(cfg.depth):
            layers += [nn.Linear(width, cfg.width), nn.LayerNorm(cfg.width), nn.GELU()]
            width = cfg.width
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(width, WARD_CLASSES if kind == "classes" else 1) for name, kind in TASKS.items()}
        )

    def forward(self, x):
        z = self.trunk(x)
        return {name: head(z) for name, head in self.heads.items()}


def task_losses(outputs, targets):
    losses = {}
    for name, kind in TASKS.items():
        out, target = outputs[name], targets[name]
        if kind == "binary":
            losses[name] = F.binary_cross_entropy_with_logits(out.squeeze(1), target)
        elif kind == "regression":
            losses[name] = F.huber_loss(out.squeeze(1), target)
        else:
            losses[name] = F.cross_entropy(out, target)
    return losses


class Trainer:
    def __init__(self, model, cfg, weights):
        self.model, self.cfg, self.weights = model, cfg, weights
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
        self.sums = dict.fromkeys(TASKS, 0.0)

    def step(self, x, targets):
        losses = task_losses(self.model(x), targets)
        self.opt.zero_grad()
        for name, loss in losses.items():
            (self.weights[name] * loss).backward(retain_graph=True)  # planted
            self.sums[name] += loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.opt.step()

    def epoch(self, x, targets):
        self.sums = dict.fromkeys(TASKS, 0.0)
        parts = torch.randperm(len(x)).split(self.cfg.batch)
        for idx in parts:
            self.step(x[idx], {name: t[idx] for name, t in targets.items()})
        return {name: s / len(parts) for name, s in self.sums.items()}


def main():
    cfg = Config()
    torch.manual_seed(9)
    x, targets = simulate_records(cfg, torch.Generator().manual_seed(9))
    weights = {name: 0.5 if kind == "regression" else 1.0 for name, kind in TASKS.items()}
    trainer = Trainer(OutcomeModel(cfg), cfg, weights)
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        summary = trainer.epoch(x, targets)
        print(epoch, " ".join(f"{k}={v:.4f}" for k, v in summary.items()))
    print(f"loop {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
