# SPDX-License-Identifier: Apache-2.0
"""Time series: river discharge from rainfall with a recurrent model whose transition is kept orthogonal.

A chain of three synthetic catchments turns rain into discharge through slow and fast reservoirs. The model
must remember rain for many days, so its recurrent matrix lives on the orthogonal group.
"""

import torch
from torch import nn
from torch.nn.utils import parametrizations

torch.manual_seed(21)

HIDDEN = 120
DAYS = 60
BATCH = 48
UPDATES = 22


class Catchment:
    """Rain to discharge through two linear reservoirs per basin."""

    def __init__(self, basins=3):
        self.slow = torch.linspace(0.96, 0.985, basins)
        self.fast = torch.linspace(0.55, 0.75, basins)

    def sample(self, batch):
        wet = (torch.rand(batch, DAYS, 3) < 0.3).float()
        rain = wet * torch.distributions.Gamma(2.0, 0.5).sample((batch, DAYS, 3))
        slow = torch.zeros(batch, 3)
        fast = torch.zeros(batch, 3)
        flow = []
        for day in range(DAYS):
            slow = self.slow * slow + 0.02 * rain[:, day]
            fast = self.fast * fast + 0.10 * rain[:, day]
            flow.append((slow + fast).sum(1))
        return rain, torch.stack(flow, dim=1)


class OrthogonalCell(nn.Module):
    """h' = modrelu(W h + U x) with W orthogonal."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.drive = nn.Linear(inputs, hidden)
        self.carry = parametrizations.orthogonal(nn.Linear(hidden, hidden, bias=False), orthogonal_map="matrix_exp")
        self.threshold = nn.Parameter(torch.full((hidden,), -0.01))

    def forward(self, x, h):
        z = self.carry(h) + self.drive(x)
        return torch.sign(z) * torch.relu(z.abs() + self.threshold)


class DischargeModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = OrthogonalCell(3, HIDDEN)
        self.head = nn.Sequential(nn.Linear(HIDDEN, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1))

    def unroll(self, rain):
        h = rain.new_zeros(rain.shape[0], HIDDEN)
        states = []
        for day in rain.unbind(1):
            h = self.cell(day, h)  # planted
            states.append(h)
        return torch.stack(states, dim=1)

    def forward(self, rain):
        return self.head(self.unroll(rain)).squeeze(-1)


def nash_sutcliffe(predicted, observed):
    residual = ((predicted - observed) ** 2).sum()
    spread = ((observed - observed.mean()) ** 2).sum()
    return 1 - (residual / spread).item()


def fit():
    basin = Catchment()
    model = DischargeModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, UPDATES)
    for update in range(UPDATES):
        rain, flow = basin.sample(BATCH)
        predicted = model(rain)
        loss = nn.functional.smooth_l1_loss(predicted, flow)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        skill = nash_sutcliffe(predicted.detach(), flow)
        if update % 5 == 0:
            print(f"update {update} loss {loss.item():.4f} skill {skill:.3f}")
    drift = model.cell.carry.weight @ model.cell.carry.weight.T - torch.eye(HIDDEN)
    return loss.item(), skill, drift.abs().max().item()


if __name__ == "__main__":
    loss, skill, drift = fit()
    print(f"loss {loss:.3f} skill {skill:.3f} orthogonal {drift < 1e-3}")
