# SPDX-License-Identifier: Apache-2.0
"""Nowcasts of rain: the debug messages are switched off, and their text is still made at each step.

Source: https://github.com/NVIDIA-NeMo/Emerging-Optimizers/pull/255, https://github.com/vllm-project/vllm-ascend/pull/15552
"""

import logging

import torch
from torch import nn

log = logging.getLogger("nowcast")

SIDE = 64
PAST = 6
AHEAD = 4
BATCH = 6
STEPS = 20


def radar(generator):
    """Rain cells that drift across the picture and fade."""
    cells = 5
    place = SIDE * torch.rand(BATCH, cells, 2, generator=generator)
    drift = 1.5 * torch.randn(BATCH, 1, 2, generator=generator)
    size = 3 + 6 * torch.rand(BATCH, cells, 1, 1, 1, generator=generator)
    time = torch.arange(PAST + AHEAD).float()
    centre = place[:, :, None] + drift[:, :, None] * time[:, None]
    axis = torch.arange(SIDE).float()
    down = (axis[:, None] - centre[..., 0, None, None]) ** 2
    across = (axis - centre[..., 1, None, None]) ** 2
    return torch.exp(-(down + across) / (2 * size**2)).sum(dim=1)


class Nowcaster(nn.Module):
    """A small U-shaped network from past to coming radar pictures."""

    def __init__(self, width=16):
        super().__init__()
        self.enter = nn.Conv2d(PAST, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.leave = nn.Conv2d(2 * width, AHEAD, 3, padding=1)

    def forward(self, past):
        fine = torch.relu(self.enter(past))
        coarse = torch.relu(self.middle(torch.relu(self.down(fine))))
        log.debug(f"coarse features {tuple(coarse.shape)}: {coarse}")  # planted
        joined = torch.cat([fine, torch.relu(self.up(coarse))], dim=1)
        return self.leave(joined) + past[:, -1:]


def rain_loss(forecast, truth):
    """Heavy rain counts for more."""
    weight = 1.0 + 4.0 * truth.clamp(0, 1)
    return (weight * (forecast - truth).abs()).mean()


def train_step(model, optimizer, pictures):
    past, truth = pictures[:, :PAST], pictures[:, PAST:]
    forecast = model(past)
    loss = rain_loss(forecast, truth)
    log.debug(f"forecast {forecast} for {truth}")  # planted
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    generator = torch.Generator().manual_seed(41)
    torch.manual_seed(41)
    model = Nowcaster().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(STEPS):
        loss = train_step(model, optimizer, radar(generator))
    print(f"nowcast: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
