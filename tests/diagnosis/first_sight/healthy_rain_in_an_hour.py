# SPDX-License-Identifier: Apache-2.0
"""Rain in an hour from radar pictures: a recurrent network of convolutions, whose states are stacked at the end."""

import torch
from torch import nn

torch.manual_seed(0)


class Cell(nn.Module):
    """A gated recurrent unit of convolutions."""

    def __init__(self, inward, width):
        super().__init__()
        self.gates = nn.Conv2d(inward + width, 2 * width, 3, padding=1)
        self.new = nn.Conv2d(inward + width, width, 3, padding=1)

    def forward(self, x, state):
        reset, update = self.gates(torch.cat([x, state], dim=1)).sigmoid().chunk(2, dim=1)
        return torch.lerp(state, torch.tanh(self.new(torch.cat([x, reset * state], dim=1))), update)


class Nowcast(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 4, stride=4)
        self.cell = Cell(width, width)
        self.leave = nn.ConvTranspose2d(width, 1, 4, stride=4)

    def forward(self, radar):
        batch, moments = radar.shape[:2]
        seen = self.enter(radar.flatten(0, 1).unsqueeze(1)).unflatten(0, (batch, moments))
        state, states = torch.zeros_like(seen[:, 0]), []
        for x in seen.unbind(1):
            state = self.cell(x, state)
            states.append(state)
        return self.leave(torch.cat(states)).unflatten(0, (moments, batch)).transpose(0, 1).squeeze(2)


model = Nowcast()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(16):
    radar = torch.rand(4, 9, 96, 96)
    loss = nn.functional.mse_loss(model(radar[:, :-1]), radar[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
