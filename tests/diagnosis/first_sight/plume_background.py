# SPDX-License-Identifier: Apache-2.0
"""Gas plumes from the air: the background of each strip comes from a full decomposition, of which five columns are used.

Source: https://github.com/esafak/mca/issues/23, https://github.com/pytorch/pytorch/issues/86234
"""

import torch
from torch import nn

ROWS, COLUMNS = 30, 36
PIXELS = ROWS * COLUMNS
BANDS = 64
RANK = 5
STRIPS = 20


def absorption():
    """The shape of methane over the bands."""
    band = torch.arange(BANDS).float()
    return torch.exp(-((band - 41) ** 2) / 8) + 0.6 * torch.exp(-((band - 52) ** 2) / 5)


def fly_strip(generator):
    """One strip of the flight: ground, haze and perhaps a plume."""
    materials = torch.rand(RANK, BANDS, generator=generator).cumsum(dim=1)
    shares = torch.rand(PIXELS, RANK, generator=generator).softmax(dim=1)
    scene = shares @ materials
    plume = torch.zeros(ROWS, COLUMNS)
    if torch.rand(1, generator=generator) < 0.5:
        row = int(torch.randint(4, ROWS - 4, (1,), generator=generator))
        plume[row - 2 : row + 3, 6:24] = torch.linspace(1.0, 0.1, 18)
    scene = scene * torch.exp(-0.2 * plume.flatten()[:, None] * absorption())
    return scene + 0.01 * torch.randn(PIXELS, BANDS, generator=generator), plume


def remove_background(scene):
    """Takes off the part that a few ground materials explain."""
    centred = scene - scene.mean(dim=0)
    left, values, right = torch.linalg.svd(centred)  # planted
    ground = (left[:, :RANK] * values[:RANK]) @ right[:RANK]
    return centred - ground


class PlumeNet(nn.Module):
    """Residual spectra to a map of plume strength."""

    def __init__(self, width=48):
        super().__init__()
        self.spectral = nn.Conv2d(BANDS, width, 1)
        self.spatial = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU()
        )
        self.strength = nn.Conv2d(width, 1, 1)

    def forward(self, residual):
        image = residual.T.reshape(1, BANDS, ROWS, COLUMNS)
        return self.strength(self.spatial(torch.relu(self.spectral(image))))[0, 0]


def whiten(residual):
    return residual / residual.std(dim=0).clamp_min(1e-4)


def main():
    generator = torch.Generator().manual_seed(29)
    torch.manual_seed(29)
    net = PlumeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    seen = 0.0
    for strip in range(STRIPS):
        scene, plume = fly_strip(generator)
        residual = whiten(remove_background(scene))
        found = net(residual)
        loss = nn.functional.smooth_l1_loss(found, plume, beta=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += float(plume.amax() > 0)
    print(f"plumes: {int(seen)} strips with one, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
