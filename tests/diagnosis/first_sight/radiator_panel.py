# SPDX-License-Identifier: Apache-2.0
"""Screen satellite radiator layouts: transient heat conduction with radiation to space, explicit scheme."""

import math
import time

import torch

ROWS, COLS, SPACING = 320, 480, 2.5e-3
CONDUCTIVITY, DENSITY, HEAT_CAPACITY, THICKNESS = 167.0, 2700.0, 896.0, 1.5e-3
SIGMA, EMISSIVITY, SPACE_K, SUN_W = 5.670374e-8, 0.88, 4.0, 210.0
TIME_STEP, N_STEPS, N_LAYOUTS = 0.018, 900, 10


class Panel:
    """Thin aluminium sheet; temperatures carry a one-cell rim for the insulated edges."""

    def __init__(self, heat_map):
        self.temperature = torch.full((ROWS + 2, COLS + 2), 262.0)
        self.flux = torch.empty(ROWS, COLS)
        capacity = DENSITY * HEAT_CAPACITY * THICKNESS
        self.source = heat_map.mul(TIME_STEP / capacity)
        self.conduction = CONDUCTIVITY / (DENSITY * HEAT_CAPACITY) * TIME_STEP / SPACING**2
        self.radiation = 2 * EMISSIVITY * SIGMA * TIME_STEP / capacity
        assert self.conduction < 0.25, "explicit scheme unstable"

    def mirror_rim(self):
        t = self.temperature
        t[0], t[-1] = t[1], t[-2]
        t[:, 0], t[:, -1] = t[:, 1], t[:, -2]

    def step(self, sun):
        self.mirror_rim()
        t, flux = self.temperature, self.flux
        core = t[1:-1, 1:-1]
        torch.add(t[:-2, 1:-1], t[2:, 1:-1], out=flux)
        flux.add_(t[1:-1, :-2]).add_(t[1:-1, 2:]).sub_(core, alpha=4.0).mul_(self.conduction)
        radiated = core**4  # planted
        flux.add_(self.source).add_(sun)
        flux.sub_(radiated.sub_(SPACE_K**4), alpha=self.radiation)
        core.add_(flux)

    @property
    def interior(self):
        return self.temperature[1:-1, 1:-1]


def sunlight(moment, period=12.0):
    """Absorbed temperature rise per step on a short test orbit (half of it in the shadow)."""
    capacity = DENSITY * HEAT_CAPACITY * THICKNESS
    return TIME_STEP / capacity * SUN_W * max(0.0, math.sin(2 * math.pi * moment / period))


def random_layout(generator, n_boxes=7):
    """Electronics boxes with a given dissipation, placed on the panel at random (W per square metre)."""
    heat = torch.zeros(ROWS, COLS)
    for _ in range(n_boxes):
        height, width = torch.randint(20, 70, (2,), generator=generator).tolist()
        row = int(torch.randint(ROWS - height, (1,), generator=generator))
        col = int(torch.randint(COLS - width, (1,), generator=generator))
        power = 25.0 + 30.0 * torch.rand((), generator=generator).item()
        heat[row : row + height, col : col + width] += power / (height * width * SPACING**2)
    return heat


@torch.inference_mode()
def screen(layout):
    panel, peak = Panel(layout), 0.0
    for index in range(N_STEPS):
        panel.step(sunlight(index * TIME_STEP))
        if index % 100 == 99:
            peak = max(peak, panel.interior.max().item())
    return peak, panel.interior.std().item()


def main():
    generator = torch.Generator().manual_seed(15)
    results = []
    started = time.perf_counter()
    for number in range(N_LAYOUTS):
        peak, spread = screen(random_layout(generator))
        results.append((peak, number))
        print(f"layout {number:2d}  peak {peak:.2f} K  spread {spread:.3f} K")
    elapsed = time.perf_counter() - started
    print(f"coolest layout: {min(results)[1]}")
    print(f"{N_LAYOUTS} layouts in {elapsed:.2f} s")


if __name__ == "__main__":
    main()
