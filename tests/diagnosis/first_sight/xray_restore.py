# SPDX-License-Identifier: Apache-2.0
"""Restore low-dose X-ray images; trained with a mix of L1 and structural similarity."""

import time

import torch
from torch import nn
from torch.nn import functional as F

SIDE, BATCH, STEPS = 112, 8, 70


class StructuralSimilarity(nn.Module):
    """Mean SSIM of single-channel images with the usual Gaussian window (11 taps, sigma 1.5)."""

    def __init__(self, taps=11, sigma=1.5, data_range=1.0):
        super().__init__()
        offset = torch.arange(taps) - (taps - 1) / 2
        profile = torch.exp(-0.5 * (offset / sigma) ** 2)
        profile = profile / profile.sum()
        self.register_buffer("window", torch.outer(profile, profile)[None, None])  # planted
        self.c1, self.c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2

    def smooth(self, images):
        return F.conv2d(images, self.window)  # planted

    def forward(self, x, y):
        mean_x, xx, xy = self.smooth(torch.cat([x, x * x, x * y])).chunk(3)
        mean_y, yy = self.smooth(torch.cat([y, y * y])).chunk(2)
        product, squares = mean_x * mean_y, mean_x.square() + mean_y.square()
        luminance = (2 * product + self.c1) / (squares + self.c1)
        structure = (2 * (xy - product) + self.c2) / (xx + yy - squares + self.c2)
        return (luminance * structure).mean()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)
        )

    def forward(self, x):
        return F.relu(x + self.body(x))


class Restorer(nn.Module):
    """Works on the half-resolution grid (pixel unshuffle) and predicts the noise."""

    def __init__(self, width=24, depth=2):
        super().__init__()
        self.net = nn.Sequential(
            nn.PixelUnshuffle(2),
            nn.Conv2d(4, width, 3, padding=1),
            nn.ReLU(),
            *(Residual(width) for _ in range(depth)),
            nn.Conv2d(width, 4, 3, padding=1),
            nn.PixelShuffle(2),
        )

    def forward(self, noisy):
        return noisy - self.net(noisy)


def phantom(n, generator):
    """Smooth tissue with a few elliptic bones and a thin fracture line."""
    grid = torch.linspace(-1, 1, SIDE)
    y, x = grid[None, :, None], grid[None, None, :]
    image = (
        F.interpolate(
            torch.rand(n, 1, 5, 5, generator=generator), size=(SIDE, SIDE), mode="bicubic", align_corners=True
        )
        .squeeze(1)
        .mul(0.4)
    )
    for _ in range(4):
        cx, cy, a, b, tone = torch.rand(5, n, 1, 1, generator=generator)
        inside = ((x - 1.6 * cx + 0.8) / (0.1 + 0.3 * a)) ** 2 + ((y - 1.6 * cy + 0.8) / (0.1 + 0.4 * b)) ** 2 < 1
        image = image + inside * 0.35 * tone
    slope, shift = torch.rand(2, n, 1, 1, generator=generator)
    crack = (y - slope * x + shift - 0.5).abs() < 0.015
    return (image - 0.15 * crack).clamp(0.02, 1.0).unsqueeze(1)


def low_dose(clean, generator, photons=180.0):
    counts = torch.poisson(clean * photons, generator=generator)
    return counts / photons


def psnr(x, y):
    return -10 * torch.log10(F.mse_loss(x, y))


def main():
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(30)
    library = phantom(240, generator)
    model, similarity = Restorer(), StructuralSimilarity()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    started = time.perf_counter()
    for step in range(STEPS):
        clean = library[torch.randint(200, (BATCH,), generator=generator)]
        restored = model(low_dose(clean, generator))
        loss = 0.16 * F.l1_loss(restored, clean) + 0.84 * (1 - similarity(restored, clean))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1:3d}  loss {loss.item():.4f}")
    elapsed = time.perf_counter() - started
    with torch.inference_mode():
        clean = library[200:]
        noisy = low_dose(clean, generator)
        restored = model(noisy)
        print(
            f"PSNR {psnr(noisy, clean):.2f} -> {psnr(restored, clean):.2f} dB, "
            f"SSIM {similarity(noisy, clean):.3f} -> {similarity(restored, clean):.3f}"
        )
    print(f"{STEPS} steps in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
