# SPDX-License-Identifier: Apache-2.0
"""Forecasts sales with attention over patches of the past; windows are views, and validation ends each epoch."""

from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class EarlyStop:
    patience: int = 3
    best: float = float("inf")
    bad: int = 0
    history: list[float] = field(default_factory=list)

    def __call__(self, loss: float) -> bool:
        self.history.append(loss)
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = min(self.best, loss)
        return self.bad >= self.patience


class Patches(nn.Module):
    def __init__(self, past=128, ahead=16, patch=8, width=128):
        super().__init__()
        self.patch, self.enter = patch, nn.Linear(patch, width)
        self.places = nn.Parameter(0.02 * torch.randn(past // patch, width))
        layer = nn.TransformerEncoderLayer(width, 8, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.predict = nn.Linear(width * past // patch, ahead)

    def forward(self, past):
        tokens = self.enter(past.unflatten(1, (-1, self.patch))) + self.places
        return self.predict(self.layers(tokens).flatten(1))


def scaled(windows):
    level, spread = windows[:, :128].mean(1, keepdim=True), windows[:, :128].std(1, keepdim=True) + 1e-5
    return (windows[:, :128] - level) / spread, (windows[:, 128:] - level) / spread


@torch.inference_mode()
def validate(model, windows):
    model.eval()
    past, ahead = scaled(windows)
    loss = nn.functional.mse_loss(model(past), ahead).item()
    model.train()
    return loss


torch.manual_seed(0)
days = torch.arange(6000.0)
series = (days / 7 * 6.283).sin() + 0.5 * (days / 30 * 6.283).sin() + 0.2 * torch.randn(6000).cumsum(0) / 30
windows = series.unfold(0, 144, 1)
training, held_out = windows[:5000], windows[5200:5456]
model, stop = Patches(), EarlyStop()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for chosen in torch.randperm(len(training))[:768].split(128):
        past, ahead = scaled(training[chosen])
        loss = nn.functional.mse_loss(model(past), ahead)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if stop(validate(model, held_out)):
        break
