# SPDX-License-Identifier: Apache-2.0
"""Vortices in a fluid, by FFT on 256 by 256 points: a simulation without a network."""

import torch

torch.manual_seed(0)


class Fluid:
    def __init__(self, size, viscosity=1e-4):
        ky, kx = torch.meshgrid(torch.fft.fftfreq(size) * size, torch.fft.rfftfreq(size) * size, indexing="ij")
        self.ikx, self.iky = 1j * kx, 1j * ky
        self.minus = -(kx.square() + ky.square())
        self.inverse = torch.where(self.minus == 0, 0.0, 1 / self.minus.clamp_max(-1))
        self.keep = (kx.abs() < size / 3) & (ky.abs() < size / 3)
        self.viscosity, self.size = viscosity, size

    def change(self, vorticity):
        stream = -vorticity * self.inverse
        u, v = torch.fft.irfft2(torch.stack([self.iky * stream, -self.ikx * stream]))
        x, y = torch.fft.irfft2(torch.stack([self.ikx * vorticity, self.iky * vorticity]))
        return self.keep * torch.fft.rfft2(-(u * x + v * y)) + self.viscosity * self.minus * vorticity

    def advance(self, vorticity, dt):
        half = vorticity + dt / 2 * self.change(vorticity)
        return vorticity + dt * self.change(half)


fluid = Fluid(256)
vorticity = torch.fft.rfft2(torch.randn(256, 256)) * fluid.keep
for step in range(60):
    vorticity = fluid.advance(vorticity, 1e-3)
print(f"enstrophy {torch.fft.irfft2(vorticity).square().mean().item():.4f}")
