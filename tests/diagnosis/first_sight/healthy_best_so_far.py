# SPDX-License-Identifier: Apache-2.0
"""Predicts the health of batteries: a short validation after each epoch, and a copy of the best weights."""

import copy
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHANNELS, MOMENTS = 6, 128


class Health(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Conv1d(CHANNELS, width, 7, padding=3)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.leave = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(width, 1))

    def forward(self, cycles):
        hidden, _ = self.recurrent(self.enter(cycles).relu().transpose(1, 2))
        return self.leave(hidden[:, -1]).squeeze(1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.waited, self.best, self.state = patience, 0, float("inf"), None

    def should_stop(self, loss, model):
        if loss < self.best:
            self.best, self.waited, self.state = loss, 0, copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited > self.patience


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total, count = torch.zeros(()), 0
    for cycles, health in loader:
        total += nn.functional.l1_loss(model(cycles), health, reduction="sum")
        count += len(health)
    model.train()
    return total.item() / count


def fit(model, training, validation, epochs=4):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    stopping = EarlyStopping(patience=3)
    for _ in range(epochs):
        for cycles, health in training:
            loss = nn.functional.smooth_l1_loss(model(cycles), health)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if stopping.should_stop(validate(model, validation), model):
            break
    model.load_state_dict(stopping.state)


def measured(count):
    return TensorDataset(torch.randn(count, CHANNELS, MOMENTS), torch.rand(count))


torch.manual_seed(0)
model = Health()
fit(model, DataLoader(measured(768), batch_size=64, shuffle=True), DataLoader(measured(64), batch_size=64))
with tempfile.TemporaryDirectory() as folder:
    torch.save(model.state_dict(), os.path.join(folder, "health.pt"))
