# SPDX-License-Identifier: Apache-2.0
"""Forecasts the load of a power grid: each window is taken out of a pandas table by position.

Source: merged braindecode/braindecode pull request 89, where iloc in __getitem__ cost a factor of seven.
"""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

HOURS = 96


def measured(hours=20_000):
    time = np.arange(hours)
    columns = {f"station_{n}": np.sin(time / (5 + n)) + 0.1 * np.random.randn(hours) for n in range(12)}
    columns["load"] = sum(columns.values())
    return pd.DataFrame(columns, index=pd.date_range("2020-01-01", periods=hours, freq="h"))


class Windows(Dataset):
    def __init__(self, table):
        self.table = table
        self.inputs = [name for name in table.columns if name != "load"]

    def __len__(self):
        return len(self.table) - HOURS - 24

    def __getitem__(self, start):
        past = self.table[self.inputs].iloc[start : start + HOURS]  # planted
        load = self.table["load"].iloc[start + HOURS : start + HOURS + 24]  # planted
        return past.to_numpy(dtype=np.float32), load.to_numpy(dtype=np.float32)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Sequential(
            nn.Conv1d(12, 48, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(48, 64, 5, padding=2), nn.ReLU()
        )
        self.predict = nn.Linear(64 * HOURS // 2, 24)

    def forward(self, past):
        return self.predict(self.filters(past.transpose(1, 2)).flatten(1))


torch.manual_seed(0)
np.random.seed(0)
loader = DataLoader(Windows(measured()), batch_size=64, shuffle=True, drop_last=True)
model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for step, (past, load) in enumerate(loader):
    loss = nn.functional.smooth_l1_loss(model(past), load)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
    if step == 40:
        break
print("mean loss", torch.stack(losses).mean().item())
