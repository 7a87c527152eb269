# SPDX-License-Identifier: Apache-2.0
"""Joint probabilistic forecast of next-day load for a group of substations."""

import math
import time

import torch
from torch import nn
from torch.distributions import MultivariateNormal

N_SITES, HISTORY = 32, 24


def simulate_load(n_hours, seed):
    g = torch.Generator().manual_seed(seed)
    hours = torch.arange(n_hours).float().unsqueeze(1)
    phase = torch.rand(N_SITES, generator=g) * 2 * math.pi
    daily = torch.sin(hours * 2 * math.pi / 24 + phase)
    weekly = 0.4 * torch.cos(hours * 2 * math.pi / 168 + phase)
    mixing = torch.randn(N_SITES, 4, generator=g) * 0.3
    shared = torch.randn(n_hours, 4, generator=g) @ mixing.T
    return daily + weekly + shared + 0.1 * torch.randn(n_hours, N_SITES, generator=g)


class JointForecaster(nn.Module):
    """GRU encoder; the head parametrises a full-covariance Gaussian."""

    def __init__(self, hidden=64):
        super().__init__()
        self.encoder = nn.GRU(N_SITES, hidden, batch_first=True)
        n_lower = N_SITES * (N_SITES + 1) // 2
        self.mean = nn.Linear(hidden, N_SITES)
        self.factor = nn.Linear(hidden, n_lower)
        rows, cols = torch.tril_indices(N_SITES, N_SITES)
        self.register_buffer("flat", rows * N_SITES + cols)

    def forward(self, history):
        state = self.encoder(history)[1][-1]
        raw = self.factor(state)
        lower = raw.new_zeros(len(raw), N_SITES * N_SITES)
        lower = lower.index_copy(1, self.flat, raw).view(-1, N_SITES, N_SITES)
        diagonal = nn.functional.softplus(lower.diagonal(dim1=-2, dim2=-1)) + 0.05
        scale = torch.tril(lower, -1) + torch.diag_embed(diagonal)
        return MultivariateNormal(self.mean(state), covariance_matrix=scale @ scale.mT)  # planted


def windows(series, batch, generator):
    """Endless batches of (history, next hour)."""
    view = series.unfold(0, HISTORY + 1, 1).transpose(1, 2)
    while True:
        rows = torch.randint(len(view), (batch,), generator=generator)
        chunk = view[rows]
        yield chunk[:, :-1], chunk[:, -1]


@torch.inference_mode()
def coverage(model, series, n=1024):
    """Share of observations inside the central 90 % interval of each site."""
    history, target = next(windows(series, n, torch.Generator().manual_seed(5)))
    forecast = model(history)
    z = (target - forecast.mean) / forecast.stddev
    return (z.abs() < 1.645).float().mean().item()


def main(steps=150, batch=256):
    torch.manual_seed(0)
    series = simulate_load(5000, seed=1)
    train, test = series[:4000], series[4000:]
    model = JointForecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batches = windows(train, batch, torch.Generator().manual_seed(2))
    start = time.perf_counter()
    for step in range(1, steps + 1):
        history, target = next(batches)
        nll = -model(history).log_prob(target).mean()
        optimizer.zero_grad(set_to_none=True)
        nll.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: nll {nll.item():.4f}")
    print(f"loop {time.perf_counter() - start:.2f}s")
    print(f"90% interval coverage {coverage(model, test):.4f}")


if __name__ == "__main__":
    main()
