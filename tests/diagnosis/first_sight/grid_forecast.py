# SPDX-License-Identifier: Apache-2.0
"""Time series: load of an electricity grid, forecast for a day from patches of the last two weeks.

Every consumer has separate daily and weekly rhythms. Windows are normalised by their own mean and spread, cut
into patches, read by a transformer, and the next 24 hours are predicted for all consumers at once. The best
weights by validation error are kept, and training stops when they get no better.
"""

import copy

import torch
from torch import nn

torch.manual_seed(71)

CONSUMERS, HOURS, HISTORY, HORIZON, PATCH = 64, 6000, 336, 24, 12
BATCH, PER_EPOCH, EPOCHS, PATIENCE = 96, 12, 2, 2


def consumption():
    """(CONSUMERS, HOURS)"""
    hour = torch.arange(HOURS)
    phase = 6.28 * torch.rand(CONSUMERS, 1)
    day = torch.sin(2 * torch.pi * hour / 24 + phase) + 0.4 * torch.sin(4 * torch.pi * hour / 24 + 2 * phase)
    week = 1 - 0.5 * torch.rand(CONSUMERS, 1) * ((hour // 24) % 7 >= 5)
    drift = torch.cumsum(0.02 * torch.randn(CONSUMERS, HOURS), dim=1)
    return (3 + day) * week + drift + 0.2 * torch.randn(CONSUMERS, HOURS)


class Windows:
    """Random windows as views of the series; copying happens once, when a batch is stacked."""

    def __init__(self, series, seed):
        self.all = series.unfold(1, HISTORY + HORIZON, 1)
        self.generator = torch.Generator().manual_seed(seed)

    def batch(self, size):
        who = torch.randint(0, self.all.shape[0], (size,), generator=self.generator)
        when = torch.randint(0, self.all.shape[1], (size,), generator=self.generator)
        return self.all[who, when].split([HISTORY, HORIZON], dim=1)


class PatchForecaster(nn.Module):
    def __init__(self, width=160, depth=3):
        super().__init__()
        self.enter = nn.Linear(PATCH, width)
        self.position = nn.Parameter(0.02 * torch.randn(HISTORY // PATCH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.leave = nn.Linear(width * (HISTORY // PATCH), HORIZON)

    def forward(self, history):
        mean = history.mean(dim=1, keepdim=True)
        spread = history.std(dim=1, keepdim=True) + 1e-5
        patches = ((history - mean) / spread).unflatten(1, (-1, PATCH))
        hidden = self.encoder(self.enter(patches) + self.position)
        return self.leave(hidden.flatten(1)) * spread + mean


@torch.no_grad()
def validation_error(model, windows):
    model.eval()
    history, future = windows.batch(64)
    error = (model(history) - future).abs().mean().item()
    model.train()
    return error


def fit():
    series = consumption()
    training = Windows(series[:, :5000], seed=1)
    model = PatchForecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    best, kept, idle = float("inf"), None, 0
    for epoch in range(EPOCHS):
        for step in range(PER_EPOCH):
            history, future = training.batch(BATCH)
            loss = nn.functional.mse_loss(model(history), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        error = validation_error(model, Windows(series[:, 5000:], seed=2))
        idle = 0 if error < best else idle + 1
        if error < best:
            best, kept = error, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch} loss {loss.item():.3f} validation {error:.3f}")
        if idle >= PATIENCE:
            break
    model.load_state_dict(kept)
    return best


if __name__ == "__main__":
    print(f"best validation error {fit():.3f}")
