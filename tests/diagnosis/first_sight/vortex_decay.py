# SPDX-License-Identifier: Apache-2.0
"""Decaying two-dimensional turbulence: pseudo-spectral vorticity equation on a doubly periodic square."""

import math
import time

import torch

N = 128
VISCOSITY = 2e-4
DT = 1.2e-3


def to_spectral(field):
    return torch.fft.fft2(field)  # planted


def to_physical(coefficients):
    return torch.fft.ifft2(coefficients).real  # planted


class Grid:
    def __init__(self, n):
        self.kx = torch.fft.fftfreq(n, 1.0 / n)[None, :]  # planted
        self.ky = torch.fft.fftfreq(n, 1.0 / n)[:, None]
        self.k2 = self.kx.square() + self.ky.square()
        self.inverse_k2 = torch.where(self.k2 > 0, 1.0 / self.k2.clamp(min=1.0), 0.0)
        self.keep = ((self.kx.abs() < n / 3) & (self.ky.abs() < n / 3)).float()
        # derivative and stream-function operators, combined: velocity and gradient from vorticity
        self.operators = torch.stack(
            [
                1j * self.ky * self.inverse_k2,
                -1j * self.kx * self.inverse_k2,
                1j * self.kx + 0 * self.ky,
                1j * self.ky + 0 * self.kx,
            ]
        )
        self.damping = torch.exp(-VISCOSITY * self.k2 * DT)
        self.half_damping = torch.exp(-VISCOSITY * self.k2 * DT / 2)


def random_vorticity(n, generator):
    """Smooth random field with energy around wave number 8."""
    noise = torch.randn(n, n, generator=generator)
    k = torch.fft.fftfreq(n, 1.0 / n)
    radius = (k[:, None].square() + k[None, :].square()).sqrt()
    shaped = torch.fft.ifft2(torch.fft.fft2(noise) * torch.exp(-((radius - 8) / 3).square())).real
    return shaped * (8.0 / shaped.std())


def advection(w_hat, grid):
    u, v, wx, wy = to_physical(grid.operators * w_hat).unbind(0)
    return to_spectral(u * wx + v * wy) * grid.keep


def step(w_hat, grid):
    """Midpoint rule with an integrating factor for the viscous term."""
    k1 = advection(w_hat, grid)
    middle = (w_hat - 0.5 * DT * k1) * grid.half_damping
    k2 = advection(middle, grid)
    return w_hat * grid.damping - DT * k2 * grid.half_damping


class Diagnostics:
    def __init__(self):
        self.rows = []

    def record(self, t, w_hat, grid):
        w = to_physical(w_hat)
        psi = to_physical(w_hat * grid.inverse_k2)
        self.rows.append((t, 0.5 * (w * psi).mean().item(), 0.5 * w.square().mean().item()))

    def show(self):
        for t, energy, enstrophy in self.rows:
            print(f"t {t:6.3f} energy {energy:.5f} enstrophy {enstrophy:.4f}")


def cfl(w_hat, grid):
    u, v = to_physical(grid.operators[:2] * w_hat).unbind(0)
    return DT * (u.abs() + v.abs()).max().item() * N / (2 * math.pi)


def main(steps=6000, report=1000):
    grid = Grid(N)
    diagnostics = Diagnostics()
    w_hat = to_spectral(random_vorticity(N, torch.Generator().manual_seed(17))) * grid.keep
    start = time.perf_counter()
    with torch.inference_mode():
        for n in range(steps):
            w_hat = step(w_hat, grid)
            if n % report == report - 1:
                diagnostics.record((n + 1) * DT, w_hat, grid)
                if cfl(w_hat, grid) > 1.0:
                    raise RuntimeError("time step too large")
    print(f"loop {time.perf_counter() - start:.2f} s")
    diagnostics.show()


if __name__ == "__main__":
    main()
