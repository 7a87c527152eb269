# SPDX-License-Identifier: Apache-2.0
"""Day-ahead electricity load forecasting with a small transformer encoder over two weeks of hourly data."""

import math
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler


class LoadWindows(Dataset):
    """History of `context` hours (load, temperature, calendar) and the load of the next `horizon` hours."""

    def __init__(self, series, context, horizon):
        self.inputs = series.unfold(0, context, 1)
        self.future = series[context:, 0].unfold(0, horizon, 1)
        self.inputs = self.inputs[: self.future.shape[0]]

    def __len__(self):
        return self.future.shape[0]

    def __getitem__(self, rows):
        return self.inputs[rows].transpose(1, 2), self.future[rows]


class HistoryBlock(nn.Module):
    def __init__(self, width, n_heads, expansion=2):
        super().__init__()
        self.norm_in = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, n_heads, batch_first=True)
        self.norm_out = nn.LayerNorm(width)
        self.refine = nn.Sequential(nn.Linear(width, expansion * width), nn.GELU(), nn.Linear(expansion * width, width))

    def forward(self, hours):
        normed = self.norm_in(hours)
        mixed, _ = self.mix(normed, normed, normed)  # planted
        hours = hours + mixed
        return hours + self.refine(self.norm_out(hours))


class LoadForecaster(nn.Module):
    def __init__(self, n_inputs, context, horizon, width=64, n_heads=8, depth=2):
        super().__init__()
        self.embed = nn.Linear(n_inputs, width)
        self.position = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(HistoryBlock(width, n_heads) for _ in range(depth))
        self.head = nn.Linear(width, horizon)

    def forward(self, inputs):
        hours = self.embed(inputs) + self.position
        for block in self.blocks:
            hours = block(hours)
        return self.head(hours.mean(dim=1))


def household_load(n_hours, generator):
    hour = torch.arange(n_hours, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * hour / 24)
    weekly = torch.cos(2 * math.pi * hour / 168)
    weather = torch.cumsum(0.05 * torch.randn(n_hours, generator=generator), 0)
    weather = weather - weather.mean()
    load = daily + 0.4 * weekly - 0.3 * weather + 0.1 * torch.randn(n_hours, generator=generator)
    return torch.stack((load, weather, daily, weekly), dim=1)


def train(model, loader, optimizer, n_steps):
    model.train()
    history, done = [], 0
    while done < n_steps:
        for inputs, future in loader:
            loss = nn.functional.l1_loss(model(inputs), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            history.append(loss.detach())
            done += 1
            if done == n_steps:
                break
    return torch.stack(history)


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    total, count = torch.zeros(()), 0
    for inputs, future in loader:
        total += nn.functional.l1_loss(model(inputs), future, reduction="sum")
        count += future.numel()
    return total.item() / count


def main():
    torch.manual_seed(12)
    context, horizon = 336, 24
    series = household_load(2500, torch.Generator().manual_seed(31))
    past, recent = LoadWindows(series[:2000], context, horizon), LoadWindows(series[2000:], context, horizon)
    train_loader = DataLoader(past, sampler=BatchSampler(RandomSampler(past), 16, True), batch_size=None)
    valid_loader = DataLoader(recent, sampler=BatchSampler(SequentialSampler(recent), 32, False), batch_size=None)
    model = LoadForecaster(series.shape[1], context, horizon)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    started = time.process_time()
    history = train(model, train_loader, optimizer, n_steps=18)
    elapsed = time.process_time() - started
    print(f"train mae {history[:5].mean().item():.4f} -> {history[-5:].mean().item():.4f}")
    print(f"validation mae {evaluate(model, valid_loader):.4f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()
