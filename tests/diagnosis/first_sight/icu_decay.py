# SPDX-License-Identifier: Apache-2.0
"""Mortality risk from irregularly sampled ICU vitals with a decaying recurrent state."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class DecayCell(nn.Module):
    """Gated cell whose memory fades with the time elapsed since the last reading."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.drive = nn.Linear(inputs, 2 * hidden)
        self.recur = nn.Linear(hidden, 2 * hidden, bias=False)
        self.rate = nn.Parameter(torch.zeros(hidden))

    def forward(self, readings, gaps):
        batch, steps, _ = readings.shape
        drive = self.drive(readings).unbind(1)
        fade = torch.exp(-F.softplus(self.rate) * gaps.unsqueeze(-1)).unbind(1)
        h = readings.new_zeros(batch, self.hidden)
        track = readings.new_zeros(batch, steps, self.hidden)  # planted
        for t in range(steps):
            h = h * fade[t]
            gate, fresh = (drive[t] + self.recur(h)).chunk(2, dim=-1)
            h = torch.lerp(h, torch.tanh(fresh), torch.sigmoid(gate))
            track[:, t] = h  # planted
        return track  # planted


class RiskModel(nn.Module):
    def __init__(self, vitals=12, hidden=64):
        super().__init__()
        self.cell = DecayCell(2 * vitals, hidden)
        self.hazard = nn.Sequential(nn.Linear(hidden, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, vitals, seen, gaps):
        track = self.cell(torch.cat([vitals * seen, seen], dim=-1), gaps)
        return self.hazard(track).squeeze(-1)


def make_ward(patients, steps=160, vitals=12):
    gaps = torch.rand(patients, steps) * 2
    drift = torch.randn(patients, 1, vitals) * 0.05
    series = torch.cumsum(drift + 0.2 * torch.randn(patients, steps, vitals), dim=1)
    seen = (torch.rand_like(series) < 0.4).float()
    severity = series.abs().mean(-1)
    event = (severity > severity.median()).float()
    return series, seen, gaps, event


class RiskTrainer:
    def __init__(self, model, ward, batch=48):
        self.model, self.ward, self.batch = model, ward, batch
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)

    def fit_batch(self, rows):
        vitals, seen, gaps, event = (field[rows] for field in self.ward)
        loss = F.binary_cross_entropy_with_logits(self.model(vitals, seen, gaps), event)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def fit(self, epochs):
        for epoch in range(epochs):
            order = torch.randperm(len(self.ward[0]))
            losses = [self.fit_batch(rows) for rows in order.split(self.batch)]
            print(f"epoch {epoch}: loss {torch.stack(losses).mean().item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(3)
    trainer = RiskTrainer(RiskModel(), make_ward(384))
    start = time.perf_counter()
    trainer.fit(epochs=14)
    print(f"fit in {time.perf_counter() - start:.1f} s")
