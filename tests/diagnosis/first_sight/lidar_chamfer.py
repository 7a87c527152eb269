# SPDX-License-Identifier: Apache-2.0
"""Point clouds: an autoencoder squeezes lidar scans of parked cars into 64 numbers and draws them again; the loss
is the Chamfer distance between the scan and the drawing. Prints the distance reached."""

import torch
from torch import nn

POINTS, CODE, BATCH, STEPS = 640, 64, 8, 36


def boxes(count, generator):
    """Scans: points on the surface of a car-like box with a cabin, with noise of the sensor."""
    size = torch.tensor([2.2, 0.9, 0.7]) * (0.8 + 0.4 * torch.rand(count, 1, 3, generator=generator))
    points = torch.rand(count, POINTS, 3, generator=generator) * 2 - 1
    side = torch.randint(3, (count, POINTS, 1), generator=generator)
    face = torch.sign(torch.gather(points, 2, side))
    points = points.scatter(2, side, face) * size
    cabin = (torch.rand(count, POINTS, generator=generator) < 0.3).unsqueeze(-1)
    lifted = points * torch.tensor([0.5, 0.9, 0.5]) + torch.tensor([0.0, 0.0, 0.9])
    return torch.where(cabin, lifted, points) + 0.01 * torch.randn(count, POINTS, 3, generator=generator)


class PointEncoder(nn.Module):
    """The same small network for every point, then the maximum over the points."""

    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128))
        self.all = nn.Sequential(nn.ReLU(), nn.Linear(128, CODE))

    def forward(self, cloud):
        return self.all(self.each(cloud).amax(1))


class CloudDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CODE, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.out = nn.Linear(256, POINTS * 3)

    def forward(self, code):
        return self.out(self.body(code)).view(-1, POINTS, 3)


def squared_distances(a, b):
    """(batch, n, 3) and (batch, m, 3) -> (batch, n, m)"""
    difference = a[:, :, None, :] - b[:, None, :, :]  # planted
    return (difference**2).sum(-1)  # planted


def chamfer(a, b):
    distance = squared_distances(a, b)
    return distance.amin(2).mean() + distance.amin(1).mean()


class Session:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.generator = torch.Generator().manual_seed(seed + 1)
        self.encoder, self.decoder = PointEncoder(), CloudDecoder()
        both = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimizer = torch.optim.Adam(both, lr=1e-3)

    def advance(self):
        scan = boxes(BATCH, self.generator)
        loss = chamfer(self.decoder(self.encoder(scan)), scan)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    session = Session(70)
    distances = []
    for step in range(STEPS):
        distances.append(session.advance())
    print(f"Chamfer distance {distances[0]:.3f} at the start, {sum(distances[-6:]) / 6:.2f} at the end")
