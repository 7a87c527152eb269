# SPDX-License-Identifier: Apache-2.0
"""Predict river levels at gauging stations with length-conditioned message passing on a flow network."""

import time

import torch
from torch import nn


class FlowMessage(nn.Module):
    """One round: each station collects rectified messages from its neighbours, then updates its state."""

    def __init__(self, width):
        super().__init__()
        self.from_station = nn.Linear(width, width)
        self.per_length = nn.Parameter(torch.randn(width))
        self.update = nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, state, origin, target, length, inv_degree):
        message = torch.addcmul(self.from_station(state[origin]), length, self.per_length).relu_()  # planted
        inbox = torch.zeros_like(state).index_add(0, target, message) * inv_degree
        return self.norm(state + torch.relu(self.update(torch.cat((state, inbox), dim=1))))


class RiverModel(nn.Module):
    def __init__(self, n_inputs, width=128, rounds=2):
        super().__init__()
        self.encode = nn.Linear(n_inputs, width)
        self.rounds = nn.ModuleList(FlowMessage(width) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, readings, network):
        state = torch.relu(self.encode(readings))
        for layer in self.rounds:
            state = layer(state, *network)
        return self.readout(state).squeeze(1)


def river_network(n_stations, n_channels, generator):
    place = torch.rand(n_stations, 2, generator=generator)
    origin = torch.randint(n_stations, (n_channels,), generator=generator)
    target = torch.randint(n_stations, (n_channels,), generator=generator)
    target, order = target.sort()
    origin = origin[order]
    length = (place[origin] - place[target]).norm(dim=1, keepdim=True)
    degree = torch.bincount(target, minlength=n_stations).clamp_(min=1)
    return origin, target, length, degree.float().reciprocal().unsqueeze(1)


def river_readings(n_days, n_inputs, network, n_stations, generator):
    """Rain histories per day; the level is rain smoothed over the neighbouring stations."""
    origin, target, length, inv_degree = network
    rain = torch.rand(n_days, n_stations, n_inputs, generator=generator).pow_(3)
    levels = []
    for day in rain:
        inflow = day.sum(dim=1)[origin] * torch.exp(-2.0 * length.squeeze(1))
        pooled = torch.zeros(n_stations).index_add_(0, target, inflow) * inv_degree.squeeze(1)
        levels.append(0.5 * pooled + 0.2 * day[:, 0])
    return rain, torch.stack(levels)


def main():
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(8)
    n_stations, n_channels, n_inputs = 1800, 28000, 12
    network = river_network(n_stations, n_channels, generator)
    rain, levels = river_readings(28, n_inputs, network, n_stations, generator)
    train_days, held_out = 24, 4
    model = RiverModel(n_inputs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    n_epochs = 3
    started = time.process_time()
    for epoch in range(n_epochs):
        running = torch.zeros(())
        for day in torch.randperm(train_days, generator=generator).tolist():
            loss = nn.functional.mse_loss(model(rain[day], network), levels[day])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch + 1}: train mse {running.item() / train_days:.5f}")
    elapsed = time.process_time() - started
    with torch.inference_mode():
        errors = [
            nn.functional.mse_loss(model(rain[day], network), levels[day])
            for day in range(train_days, train_days + held_out)
        ]
    print(f"held-out mse {torch.stack(errors).mean().item():.5f}")
    print(f"loop cpu {elapsed:.2f}")


if __name__ == "__main__":
    main()
