# SPDX-License-Identifier: Apache-2.0
"""Hardness of alloys from few samples: the helper that loads them is started again for each short epoch.

Source: https://github.com/metatensor/metatrain/pull/1271, https://github.com/pytorch/pytorch/issues/15849
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

SAMPLES = 64
ELEMENTS = 12
SITES = 32
SHELLS = 24
BATCH = 16
EPOCHS = 16


class AlloyCells(Dataset):
    """Cells of an alloy, described by the shells of neighbours around each site."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.place = torch.rand(SAMPLES, SITES, 3, generator=generator)
        self.element = torch.randint(0, ELEMENTS, (SAMPLES, SITES), generator=generator)
        self.radius = torch.rand(ELEMENTS, generator=generator)
        spread = self.radius[self.element].std(dim=1)
        self.hardness = 10 * spread + 0.1 * torch.randn(SAMPLES, generator=generator)

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        place = self.place[index]
        away = place[:, None] - place
        away = away - away.round()
        distance = away.norm(dim=-1) + torch.eye(SITES)
        shell = torch.linspace(0.05, 0.8, SHELLS)
        weight = torch.exp(-((distance[..., None] - shell) ** 2) / 0.004)
        radius = self.radius[self.element[index]]
        around = torch.einsum("ijs,j->is", weight, radius)
        return torch.cat([around, radius[:, None]], dim=1), self.hardness[index]


class EpochOrder(Sampler):
    """An order for each epoch that depends on nothing but its number."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return SAMPLES

    def __iter__(self):
        generator = torch.Generator().manual_seed(1000 + self.epoch)
        return iter(torch.randperm(SAMPLES, generator=generator).tolist())


class HardnessModel(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.site = nn.Sequential(nn.Linear(SHELLS + 1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.cell = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, sites):
        return self.cell(self.site(sites).mean(dim=1)).squeeze(-1)


def train_epoch(model, optimizer, loader):
    total = 0.0
    for sites, hardness in loader:
        loss = nn.functional.mse_loss(model(sites), hardness)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(hardness)
    return total / SAMPLES


def main():
    torch.manual_seed(47)
    order = EpochOrder()
    loader = DataLoader(AlloyCells(47), batch_size=BATCH, sampler=order, num_workers=1)  # planted
    model = HardnessModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(EPOCHS):
        order.set_epoch(epoch)
        loss = train_epoch(model, optimizer, loader)
    print(f"alloys: loss {loss:.6f}")


if __name__ == "__main__":
    main()
