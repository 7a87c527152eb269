# SPDX-License-Identifier: Apache-2.0
"""Online forecasting for a fleet of heat pumps: predict the next hour, observe it, adapt, raise alarms."""

import logging
import time
from collections import deque

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("heatpump")

FLEET, SENSORS, WINDOW = 96, 6, 24


def telemetry(ticks, seed=7):
    """Yields one (FLEET, SENSORS) reading per tick: daily cycle, weather drift and rare faults."""
    g = torch.Generator().manual_seed(seed)
    phase = torch.rand(FLEET, SENSORS, generator=g) * 6.28
    drift = torch.zeros(FLEET, SENSORS)
    for t in range(ticks):
        drift.mul_(0.98).add_(torch.randn(FLEET, SENSORS, generator=g), alpha=0.05)
        reading = torch.sin(phase + 6.28 * t / 24) + drift
        if t % 97 == 96:
            reading[t % FLEET] += 3.0
        yield reading


class Forecaster(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.mix = nn.Sequential(nn.Linear(WINDOW * SENSORS, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.level = nn.Linear(hidden, SENSORS)

    def forward(self, window):
        return window[:, -1] + self.level(self.mix(window.flatten(1)))


class AlarmTracker:
    """Exponentially weighted residual scale per unit; alarm when a residual is far outside."""

    def __init__(self, decay=0.97, threshold=6.0):
        self.scale = torch.ones(FLEET)
        self.decay, self.threshold = decay, threshold
        self.count = 0

    def observe(self, residual):
        size = residual.square().mean(1).sqrt()
        alarms = size > self.threshold * self.scale
        self.scale = torch.where(alarms, self.scale, self.decay * self.scale + (1 - self.decay) * size)
        self.count += int(alarms.sum())
        return alarms


class OnlineService:
    def __init__(self, model, lr=2e-3):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
        self.tracker = AlarmTracker()
        self.history = deque(maxlen=WINDOW)
        self.error = 0.0
        self.steps = 0

    def on_reading(self, tick, reading):
        if len(self.history) == WINDOW:
            window = torch.stack(tuple(self.history), dim=1)
            forecast = self.model(window)
            residual = reading - forecast
            loss = residual.square().clamp(max=4.0).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.tracker.observe(residual.detach())
            log.debug(f"tick {tick} forecast {forecast[0]} residual {residual[0]}")  # planted
            self.error += loss.item()
            self.steps += 1
        self.history.append(reading)


def main(ticks=4000):
    torch.manual_seed(1)
    service = OnlineService(Forecaster())
    start = time.perf_counter()
    for tick, reading in enumerate(telemetry(ticks)):
        service.on_reading(tick, reading)
        if tick % 1000 == 999:
            log.info("tick %d mean error %.4f alarms %d", tick, service.error / service.steps, service.tracker.count)
    print(f"loop {time.perf_counter() - start:.2f} s")
    print(f"final error {service.error / service.steps:.6f} alarms {service.tracker.count}")


if __name__ == "__main__":
    main()
