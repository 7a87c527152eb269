# SPDX-License-Identifier: Apache-2.0
"""Vision, transfer learning: a small convolutional backbone first learns to tell the cap colour of synthetic
mushroom pictures, then a new head on top of it learns the species for a field guide. Prints the last losses."""

import torch
from torch import nn

SPECIES = 12
SIZE = 56


class Backbone(nn.Module):
    def __init__(self, widths=(16, 32, 64, 96)):
        super().__init__()
        layers, channels = [], 3
        for width in widths:
            layers += [
                nn.Conv2d(channels, width, 3, padding=1, bias=False),
                nn.GroupNorm(4, width),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
            ]
            channels = width
        self.layers = nn.Sequential(*layers)
        self.width = channels

    def forward(self, pictures):
        return self.layers(pictures).mean((2, 3))


class FieldGuide(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(nn.Linear(backbone.width, 128), nn.ReLU(), nn.Linear(128, classes))

    def forward(self, pictures):
        return self.head(self.backbone(pictures))


def draw(count, generator):
    """Discs with a stem on a noisy ground: colour, radius and stem width depend on the species."""
    species = torch.randint(SPECIES, (count,), generator=generator)
    axis = torch.linspace(-1, 1, SIZE)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    radius = 0.3 + 0.03 * (species % 4).float()
    stem = 0.05 + 0.04 * (species // 4).float()
    cap = ((x**2 + (y + 0.2) ** 2)[None] < radius[:, None, None] ** 2).float()
    foot = ((x.abs()[None] < stem[:, None, None]) & (y > 0)[None]).float()
    hue = nn.functional.one_hot(species % 3, 3).float()[:, :, None, None]
    pictures = 0.8 * cap[:, None] * hue + 0.5 * foot[:, None]
    return pictures + 0.15 * torch.randn(count, 3, SIZE, SIZE, generator=generator), species


class Trainer:
    """One pass over freshly drawn batches with a given optimizer."""

    def __init__(self, model, optimizer, generator):
        self.model, self.optimizer, self.generator = model, optimizer, generator
        self.criterion = nn.CrossEntropyLoss()
        self.losses = []

    def step(self, target_of, batch=48):
        pictures, species = draw(batch, self.generator)
        loss = self.criterion(self.model(pictures), target_of(species))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def pretrain(generator, rounds=6):
    guide = FieldGuide(Backbone(), 3)
    trainer = Trainer(guide, torch.optim.Adam(guide.parameters(), lr=2e-3), generator)
    for _ in range(rounds):
        trainer.step(lambda species: species % 3)
    return guide.backbone.eval()


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(11)
    backbone = pretrain(generator)

    # the backbone stays as it is: the optimizer gets only the head
    guide = FieldGuide(backbone, SPECIES)
    optimizer = torch.optim.Adam(guide.head.parameters(), lr=3e-3)  # planted
    trainer = Trainer(guide, optimizer, generator)
    for step in range(60):
        trainer.step(lambda species: species)

    with torch.no_grad():
        pictures, species = draw(200, generator)
        hits = (guide(pictures).argmax(1) == species).float().mean()
    last = sum(trainer.losses[-10:]) / 10
    print(f"head loss {last:.3f}, accuracy {hits:.2f}")


if __name__ == "__main__":
    main()
