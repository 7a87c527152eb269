# SPDX-License-Identifier: Apache-2.0
"""Probabilistic forecast of wind turbine output: recurrent encoder, sampled feedback decoder."""

import math
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

HISTORY, HORIZON, HOURS, TURBINES = 96, 24, 3000, 12


class TurbineWindows(Dataset):
    """Answers a list of positions with a whole batch of (history, future) windows."""

    def __init__(self, output, calendar):
        span = HISTORY + HORIZON
        self.windows = output.unfold(1, span, 1)
        self.calendar = calendar.unfold(0, span, 1).transpose(1, 2)
        self.per_turbine = self.windows.shape[1]

    def __len__(self):
        return TURBINES * self.per_turbine

    def __getitem__(self, positions):
        positions = torch.tensor(positions)
        turbine, hour = positions // self.per_turbine, positions % self.per_turbine
        return self.windows[turbine, hour], self.calendar[hour]


def synth_output(generator):
    hours = torch.arange(HOURS, dtype=torch.float32)
    calendar = torch.stack([torch.sin(2 * math.pi * hours / p) for p in (12.0, 24.0, 168.0)], 1)
    wind = torch.randn(TURBINES, HOURS, generator=generator).cumsum(1)
    wind = wind - nn.functional.avg_pool1d(wind[:, None], 49, 1, 24, count_include_pad=False)[:, 0]
    return torch.sigmoid(0.5 * wind + calendar[:, 1] - 0.5), calendar


class PathForecaster(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.GRU(4, width, batch_first=True)
        self.decoder = nn.GRU(4, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def summarise(self, history, calendar):
        return self.encoder(torch.cat([history.unsqueeze(2), calendar], 2))[1]

    def likelihood(self, window, calendar):
        """Teacher forcing: the true outputs are fed in, so the decoder takes the horizon at once."""
        state = self.summarise(window[:, :HISTORY], calendar[:, :HISTORY])
        inputs = torch.cat([window[:, HISTORY - 1 : -1, None], calendar[:, HISTORY:]], 2)
        mean, spread = self.head(self.decoder(inputs, state)[0]).unbind(2)
        scaled = (window[:, HISTORY:] - mean) * torch.exp(-spread)
        return (0.5 * scaled.square() + spread).mean()

    @torch.inference_mode()
    def sample(self, history, calendar, paths):
        """Every sampled output is fed back, so the horizon has to be walked hour by hour."""
        state = self.summarise(history, calendar[:, :HISTORY]).repeat_interleave(paths, 1)
        value = history[:, -1].repeat_interleave(paths)
        future = calendar[:, HISTORY:].repeat_interleave(paths, 0)
        track = []
        for hour in range(HORIZON):
            inputs = torch.cat([value[:, None], future[:, hour]], 1).unsqueeze(1)
            state = self.decoder(inputs, state)[1]
            mean, spread = self.head(state[0]).unbind(1)
            value = mean + spread.exp() * torch.randn_like(mean)
            track.append(value)
        return torch.stack(track, 1).view(len(history), paths, HORIZON)


def crps(samples, truth):
    """Continuous ranked probability score from the sorted sample paths (all ranks are needed)."""
    count = samples.shape[1]
    ordered = samples.sort(1).values
    weight = (2 * torch.arange(count) - count + 1).view(1, -1, 1) / count**2
    return ((samples - truth[:, None]).abs().mean(1) - (weight * ordered).sum(1)).mean()


def main():
    torch.manual_seed(3)
    output, calendar = synth_output(torch.Generator().manual_seed(3))
    windows = TurbineWindows(output, calendar)
    sampler = BatchSampler(RandomSampler(windows, num_samples=10_000), 128, drop_last=True)
    loader = DataLoader(windows, batch_size=None, sampler=sampler)
    model = PathForecaster()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
    started = time.process_time()
    for epoch in range(2):
        losses = []
        for window, hours in loader:
            loss = model.likelihood(window, hours)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: loss {torch.stack(losses).mean():.4f}")
    scores = []
    for start in range(0, 1200, 100):
        window, hours = windows[list(range(start, start + 100))]
        scores.append(crps(model.sample(window[:, :HISTORY], hours, 50), window[:, HISTORY:]))
    print(f"score {torch.stack(scores).mean():.4f}")
    print(f"loop {time.process_time() - started:.2f} s")


if __name__ == "__main__":
    main()
