# SPDX-License-Identifier: Apache-2.0
"""Distil a large tree-canopy classifier into a small one for drones, on freshly augmented tiles."""

import time

import torch
from torch import nn
from torch.nn import functional as F

N_CLASSES, SIDE, BATCH, STEPS = 6, 48, 32, 200


def conv_unit(n_in, n_out, stride=1):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


class Canopy(nn.Module):
    def __init__(self, width, units):
        super().__init__()
        layers = [conv_unit(4, width, 2)]
        for stage in range(2):
            layers += [conv_unit(width << stage, width << stage) for _ in range(units)]
            layers.append(conv_unit(width << stage, width << (stage + 1), 2))
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(width << 2, N_CLASSES)

    def forward(self, tiles):
        return self.head(self.features(tiles).mean(dim=(2, 3)))


def make_tiles(n, generator):
    """Four-band tiles; species differ in crown size, spectrum and texture."""
    species = torch.randint(N_CLASSES, (n,), generator=generator)
    spectrum = 0.3 + 0.5 * torch.rand(N_CLASSES, 4, generator=generator)
    tiles = torch.empty(n, 4, SIDE, SIDE)
    for kind in range(N_CLASSES):
        rows = torch.nonzero(species == kind).squeeze(1)
        coarse = torch.rand(len(rows), 1, 4 + 3 * kind, 4 + 3 * kind, generator=generator)
        crown = F.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")
        tiles[rows] = crown * spectrum[kind, :, None, None]
    tiles += 0.12 * torch.randn(tiles.shape, generator=generator)
    return tiles.contiguous(memory_format=torch.channels_last), species


class Augment:
    """Random dihedral transform per batch, per-tile illumination, haze and cut-out."""

    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)

    def __call__(self, tiles):
        n, turns = len(tiles), int(torch.randint(4, (1,), generator=self.random))
        tiles = torch.rot90(tiles, turns, (2, 3))
        gain, haze, row, col = torch.rand(4, n, 1, 1, 1, generator=self.random)
        axis = torch.arange(SIDE)
        hole = ((axis[:, None] - row * SIDE).abs() < 6) & ((axis - col * SIDE).abs() < 6)
        tiles = torch.addcmul(0.15 * haze, tiles, 0.8 + 0.4 * gain).masked_fill(hole, 0.0)
        return tiles.contiguous(memory_format=torch.channels_last)


def supervised(model, tiles, species, augment, steps, lr=3e-3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
    for _ in range(steps):
        pick = torch.randint(len(tiles), (BATCH,), generator=augment.random)
        loss = F.cross_entropy(model(augment(tiles[pick])), species[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def distil(student, teacher, tiles, augment, steps, temperature=3.0):
    optimizer = torch.optim.AdamW(student.parameters(), lr=4e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        pick = torch.randint(len(tiles), (BATCH,), generator=augment.random)
        view = augment(tiles[pick])
        with torch.no_grad():
            soft = F.log_softmax(teacher(view) / temperature, dim=1)
        guess = F.log_softmax(student(view) / temperature, dim=1)
        loss = temperature**2 * F.kl_div(guess, soft, log_target=True, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            print(f"step {step + 1:4d}  distillation loss {loss.item():.4f}")


@torch.inference_mode()
def accuracy(model, tiles, species):
    model.eval()
    guess = torch.cat([model(part) for part in tiles.split(100)]).argmax(1)
    return (guess == species).float().mean().item()


def main():
    torch.manual_seed(23)
    tiles, species = make_tiles(1600, torch.Generator().manual_seed(3))
    augment = Augment(seed=4)
    teacher = Canopy(32, 2).to(memory_format=torch.channels_last)
    supervised(teacher, tiles[:1200], species[:1200], augment, steps=40)
    teacher.eval().requires_grad_(False)
    student = Canopy(12, 1).to(memory_format=torch.channels_last)
    started = time.perf_counter()
    distil(student, teacher, tiles[:1200], augment, STEPS)
    elapsed = time.perf_counter() - started
    print(
        f"teacher {accuracy(teacher, tiles[1200:], species[1200:]):.3f}  "
        f"student {accuracy(student, tiles[1200:], species[1200:]):.3f}"
    )
    print(f"{STEPS} steps in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
